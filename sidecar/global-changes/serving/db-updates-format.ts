import type { Seq } from '../../couch/documents.ts'
import type { Feed } from './db-updates-query.ts'

/** How a feed is written: every byte as CouchDB does it. */
export interface Format {
  readonly type: string
  readonly head: string
  /** Rows, each of them JSON already; `isFirst`: none has been written before. */
  rows(rows: readonly Row[], isFirst: boolean): string
  /** Before it waits for the first row: shows a client that it is connected. */
  waiting(lastSeq: Seq): string
  readonly beat: string
  end(lastSeq: Seq): string
}

export interface Row {
  readonly seq: Seq
  readonly json: string
}

const list: Format = {
  type: 'application/json',
  head: '{"results":[\n',
  rows: (rows, isFirst) => (isFirst ? '' : ',\r\n') + rows.map(({ json }) => json).join(',\r\n'),
  waiting: () => '',
  beat: '\n',
  end: (lastSeq) => `\n],\n"last_seq":${JSON.stringify(lastSeq)}}\n`,
}

const lines: Format = {
  type: 'application/json',
  head: '',
  rows: (rows) => rows.map(({ json }) => `${json}\n`).join(''),
  waiting: () => '\n',
  beat: '\n',
  end: (lastSeq) => `{"last_seq":${JSON.stringify(lastSeq)}}\n`,
}

const events: Format = {
  type: 'text/event-stream',
  head: '',
  rows: (rows) => rows.map(({ json, seq }) => `data: ${json}\nid: ${JSON.stringify(seq)}\n\n`).join(''),
  waiting: (lastSeq) => `id: ${JSON.stringify(lastSeq)}\n\n`, // no event, but the sequence to come back to
  beat: 'event: heartbeat\ndata: \n\n',
  end: () => '',
}

export const FORMATS: Readonly<Record<Feed, Format>> = {
  normal: list,
  longpoll: list,
  continuous: lines,
  eventsource: events,
}
