/** Jobs for sidecars, in one database or spread over many. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Database } from '../../sidecar/couch/database.ts'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import { createTestCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { POISON } from './handlers.ts'

const HEAL_MS = 180_000

/** The databases of the jobs, by node. If one node does not answer, the next one gets the request. */
export type Board = readonly (readonly Database[])[]

/** The databases with these names on each of these servers. */
export const boardOf = (urls: readonly string[], names: readonly string[]): Board =>
  urls.map((url) => {
    const couch = createTestCouch({ url })
    return names.map((name) => couch.db(name))
  })

/** Ids of jobs: `perType` each of park and retry, and twice as many of safe. */
export const jobsOf = (perType: number, name = ''): string[] =>
  Array.from({ length: perType }, (_, i) =>
    ['safe', 'safe2', 'park', 'retry'].map((type) => `${type}-${name}${i}`),
  ).flat()

/** Writes jobs in small groups during the mishaps, with retries while CouchDB fails. */
export async function writeJobs(board: Board, jobs: readonly string[], groups: number): Promise<void> {
  const size = Math.ceil(jobs.length / (groups * 12))
  for (let from = 0; from < jobs.length; from += size) {
    await write(board, jobs.slice(from, from + size))
    await sleep(300)
  }
}

/** Writes some documents for any worker, and resolves when all of them are done. */
export async function probe(board: Board): Promise<void> {
  const types = ['safe', 'retry']
  const ids = Array.from({ length: 12 }, (_, i) => `${types[i % 2]}-probe-${Math.floor(performance.now())}-${i}`)
  await write(board, ids)
  await eventually(
    async () => {
      const docs = (await ask(board, (dbs) => Promise.all(dbs.map((db) => db.getMany(ids))))).flat()
      expect(docs.filter(({ state }) => state === 'done')).toHaveLength(ids.length)
    },
    { within: HEAL_MS },
  )
}

/** Resolves with all jobs when all are settled, or when the time is over. */
export async function untilSettled(board: Board): Promise<StoredDoc[]> {
  let docs: StoredDoc[] = []
  const isOpen = (doc: StoredDoc) =>
    typeof doc.type === 'string' &&
    doc.type !== POISON &&
    doc.state !== 'done' &&
    !(doc.docstate as { parked?: object } | undefined)?.parked
  await eventually(
    async () => {
      const all = (await ask(board, (dbs) => Promise.all(dbs.map((db) => db.withPrefix(''))))).flat()
      docs = all.filter(({ _id }) => !_id.startsWith('_design/'))
      expect(docs.filter(isOpen).map(({ _id }) => _id)).toEqual([])
    },
    { within: HEAL_MS },
  ).catch(() => undefined) // the report lists the open jobs
  return docs
}

/** Writes the same jobs on each of these nodes. An id begins with the job's type, and determines its database. */
export async function write(board: Board, ids: readonly string[]): Promise<void> {
  const writing = board[0]!.map(async (_, place) => {
    const here = ids.filter((id) => placeOf(id, board[0]!.length) === place)
    const docs = here.map((_id) => JSON.stringify({ _id, type: /^[a-z]+/.exec(_id)![0], state: 'new' }))
    if (docs.length > 0) await withRetries(() => ask(board, (dbs) => dbs[place]!.bulk(docs)))
  })
  await Promise.all(writing)
}

export const placeOf = (id: string, places: number) =>
  [...id].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7) % places

/** Sends the request to one of the nodes. */
const ask = <T>(board: Board, question: (dbs: readonly Database[]) => Promise<T>): Promise<T> =>
  question(board[Math.floor(Math.random() * board.length)]!)

async function withRetries(work: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await work()
      return
    } catch {
      await sleep(200)
    }
  }
}
