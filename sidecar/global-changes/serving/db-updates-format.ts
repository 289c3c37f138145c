import type { Seq } from '../../couch/documents.ts'
import type { Feed } from './db-updates-query.ts'

/** Format of a feed: every byte as in CouchDB. */
export interface Format {
  readonly type: string
  readonly head: string
  /** Writes rows that are JSON already. `isFirst`: no row was written before. */
  rows(rows: readonly Row[], isFirst: boolean): string
  /** Written before the wait for the first row, so that a client sees the connection. */
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
  waiting: (lastSeq) => `id: ${JSON.stringify(lastSeq)}\n\n`, // no event, only the sequence to resume from
  beat: 'event: heartbeat\ndata: \n\n',
  end: () => '',
}

export const FORMATS: Readonly<Record<Feed, Format>> = {
  normal: list,
  longpoll: list,
  continuous: lines,
  eventsource: events,
}
