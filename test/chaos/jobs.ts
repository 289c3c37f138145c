/** Jobs for sidecars, in one database or spread over many. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Database } from '../../sidecar/couch/database.ts'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import { eventually } from '../support/eventually.ts'

const HEAL_MS = 180_000

/** In small groups, as long as the mishaps go on: through whatever happens to CouchDB. `perType` of park and retry each. */
export async function writeJobs(dbs: readonly Database[], perType: number, groups: number): Promise<void> {
  const jobs = Array.from({ length: perType }, (_, i) => [`safe-${i}`, `safe2-${i}`, `park-${i}`, `retry-${i}`]).flat()
  const size = Math.ceil(jobs.length / (groups * 12))
  for (let from = 0; from < jobs.length; from += size) {
    await write(dbs, jobs.slice(from, from + size))
    await sleep(300)
  }
}

/** Some documents, for whichever worker: resolves when all of them are done. */
export async function probe(dbs: readonly Database[]): Promise<void> {
  const ids = Array.from({ length: 12 }, (_, i) => `safe-probe-${Math.floor(performance.now())}-${i}`)
  await write(dbs, ids)
  await eventually(
    async () => {
      const docs = (await Promise.all(dbs.map((db) => db.getMany(ids)))).flat()
      expect(docs.filter(({ state }) => state === 'done')).toHaveLength(ids.length)
    },
    { within: HEAL_MS },
  )
}

/** All jobs, when nothing is left to do, or nothing comes of what is left. */
export async function untilSettled(dbs: readonly Database[]): Promise<StoredDoc[]> {
  let docs: StoredDoc[] = []
  const isOpen = (doc: StoredDoc) =>
    typeof doc.type === 'string' && doc.state !== 'done' && !(doc.docstate as { parked?: object } | undefined)?.parked
  await eventually(
    async () => {
      const all = (await Promise.all(dbs.map((db) => db.withPrefix('')))).flat()
      docs = all.filter(({ _id }) => !_id.startsWith('_design/'))
      expect(docs.filter(isOpen).map(({ _id }) => _id)).toEqual([])
    },
    { within: HEAL_MS },
  ).catch(() => undefined) // the report tells which
  return docs
}

/** The type of a job begins its id, which also says in which database it is. */
async function write(dbs: readonly Database[], ids: readonly string[]): Promise<void> {
  const writing = dbs.map(async (db, place) => {
    const here = ids.filter((id) => placeOf(id, dbs.length) === place)
    const docs = here.map((_id) => JSON.stringify({ _id, type: /^[a-z]+/.exec(_id)![0], state: 'new' }))
    if (docs.length > 0) await patiently(() => db.bulk(docs))
  })
  await Promise.all(writing)
}

const placeOf = (id: string, places: number) =>
  [...id].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7) % places

async function patiently(work: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await work()
      return
    } catch {
      await sleep(200)
    }
  }
}
