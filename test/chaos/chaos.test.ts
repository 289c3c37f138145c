/**
 * Three sidecars on one database, and one mishap after the other. `npm run test:chaos` takes minutes; as part of all
 * tests each mishap happens once. CHAOS_SEED repeats a run, as far as processes let themselves be repeated.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { Database } from '../../sidecar/couch/database.ts'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import { createTestCouch, needs, startPrivateCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startWorker } from './fleet.ts'
import { mishaps } from './mishaps.ts'
import { startRecorder } from './recorder.ts'
import { outcomesOf, rowOf } from './report.ts'
import { seeded } from './seeded.ts'

const long = process.env.CHAOS === 'long'
const PER_TYPE = long ? 2000 : 300 // of park and retry; safe has as many as both
const ROUNDS = long ? 4 : 1
const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 1e6))
const HEAL_MS = 180_000

test(
  `whatever happens to three sidecars, nothing is lost and nothing unsafe runs twice (seed ${seed})`,
  { timeout: 1_800_000 },
  async () => {
    needs('private server')
    const random = seeded(seed)
    const folder = await mkdtemp(join(tmpdir(), 'chaos-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const couch = await startPrivateCouch()
    onTestFinished(() => couch.stop())
    const recorder = await startRecorder(join(folder, 'effects'))
    onTestFinished(() => recorder.stop())
    const db = createTestCouch({ url: couch.url }).db('jobs')
    await db.create()
    const options = { folder, couchUrl: couch.url, recorderUrl: recorder.url, database: db.name }
    const workers = await Promise.all(['a', 'b', 'c'].map((name) => startWorker(name, options)))
    onTestFinished(async () => void (await Promise.all(workers.map((worker) => worker.kill()))))

    const names = Array.from({ length: ROUNDS }, () => Object.keys(mishaps).sort(() => random() - 0.5)).flat()
    const writing = writeJobs(db, names.length)
    for (const name of names) {
      const victim = workers[Math.floor(random() * workers.length)]!
      const began = performance.now()
      await mishaps[name]!(victim, { couch, folder, random })
      const over = performance.now()
      await probe(db)
      const [took, healed] = [over - began, performance.now() - over].map((ms) => (ms / 1000).toFixed(1))
      console.log(`${name} (${victim.name}): took ${took} s, recovered ${healed} s later`)
    }
    await writing
    const docs = await untilSettled(db)
    const outcomes = outcomesOf(docs, await recorder.effects())
    console.log(outcomes.map(rowOf).join('\n'))
    for (const { type, lost, skipped, twice, otherKeys } of outcomes) {
      expect(lost, `${type}: lost`).toEqual([])
      expect(skipped, `${type}: done without effect`).toEqual([])
      expect(otherKeys, `${type}: another key`).toEqual([])
      if (type === 'park') expect(twice, 'park: run twice').toEqual([])
    }
    for (const worker of workers) expect(await worker.stop(), 'it stops in good order').toBe(0)
  },
)

/** In small groups, as long as the mishaps go on: through whatever happens to CouchDB. */
async function writeJobs(db: Database, groups: number): Promise<void> {
  const jobs = Array.from({ length: PER_TYPE }, (_, i) => [`safe-${i}`, `safe2-${i}`, `park-${i}`, `retry-${i}`]).flat()
  const size = Math.ceil(jobs.length / (groups * 12))
  for (let from = 0; from < jobs.length; from += size) {
    const group = jobs.slice(from, from + size)
    await patiently(() =>
      db.bulk(group.map((_id) => JSON.stringify({ _id, type: /^[a-z]+/.exec(_id)![0], state: 'new' }))),
    )
    await sleep(300)
  }
}

/** Some documents, for whichever worker: resolves when all of them are done. */
async function probe(db: Database): Promise<void> {
  const ids = Array.from({ length: 12 }, (_, i) => `probe-${Math.floor(performance.now())}-${i}`)
  await patiently(() => db.bulk(ids.map((_id) => JSON.stringify({ _id, type: 'safe', state: 'new' }))))
  await eventually(
    async () => {
      const docs = await db.getMany(ids)
      expect(docs.filter(({ state }) => state === 'done')).toHaveLength(ids.length)
    },
    { within: HEAL_MS },
  )
}

async function untilSettled(db: Database): Promise<StoredDoc[]> {
  let docs: StoredDoc[] = []
  const isOpen = (doc: StoredDoc) =>
    typeof doc.type === 'string' && doc.state !== 'done' && !(doc.docstate as { parked?: object } | undefined)?.parked
  await eventually(
    async () => {
      docs = (await db.withPrefix('')).filter(({ _id }) => !_id.startsWith('_design/'))
      expect(docs.filter(isOpen).map(({ _id }) => _id)).toEqual([])
    },
    { within: HEAL_MS },
  ).catch(() => undefined) // the report tells which
  return docs
}

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
