import type { Seq } from '../couch/documents.ts'
import type { Feed } from './db-updates-query.ts'

/** How a feed is written: every byte as CouchDB does it. */
export interface Format {
  readonly type: string
  readonly head: string
  /** Rows, each of them JSON already; `isFirst`: none has been written before. */
  rows(rows: readonly Row[], isFirst: boolean): string
  /** Before it waits for the first row: shows a client that it is connected. */
  waiting(place: Seq): string
  readonly beat: string
  end(place: Seq): string
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
  end: (place) => `\n],\n"last_seq":${JSON.stringify(place)}}\n`,
}

const lines: Format = {
  type: 'application/json',
  head: '',
  rows: (rows) => rows.map(({ json }) => `${json}\n`).join(''),
  waiting: () => '\n',
  beat: '\n',
  end: (place) => `{"last_seq":${JSON.stringify(place)}}\n`,
}

const events: Format = {
  type: 'text/event-stream',
  head: '',
  rows: (rows) => rows.map(({ json, seq }) => `data: ${json}\nid: ${JSON.stringify(seq)}\n\n`).join(''),
  waiting: (place) => `id: ${JSON.stringify(place)}\n\n`, // no event, but the place to come back to
  beat: 'event: heartbeat\ndata: \n\n',
  end: () => '',
}

export const FORMATS: Readonly<Record<Feed, Format>> = {
  normal: list,
  longpoll: list,
  continuous: lines,
  eventsource: events,
}
