/**
 * Three sidecars, on one database and on many, and one mishap after the other. `npm run test:chaos` takes minutes; as
 * part of `npm test` every second mishap that is drawn happens, on one database. CHAOS_SEED repeats a run, as far as
 * processes let themselves be repeated.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createTestCouch } from '../support/couchdb.ts'
import { amount, sample } from '../support/thorough.ts'
import { handlersModule } from './handlers.ts'
import { probe, untilSettled, writeJobs } from './jobs.ts'
import { mishaps, startWorld } from './mishaps.ts'
import { startRecorder } from './recorder.ts'
import { outcomesOf, rowOf } from './report.ts'
import { startWorker } from './trio.ts'

const PER_TYPE = amount(50, 2000) // of park and retry; safe has as many as both
const ROUNDS = amount(1, 4)
const STEP = 2 // of the mishaps that are drawn
const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 1e6))

const worlds = [
  ['on one database', 'jobs', ['jobs']],
  ['on thirty of a glob', 'jobs-*', Array.from({ length: 30 }, (_, i) => `jobs-${i}`)],
] as const

test.each(sample(worlds, worlds.length))(
  `whatever happens to three sidecars %s, nothing is lost and nothing unsafe runs twice (seed ${seed})`,
  { timeout: 1_800_000 },
  async (_, databases, names) => {
    const world = await startWorld(seed)
    const { couch, folder, random } = world
    const recorder = await startRecorder(join(folder, 'effects'))
    onTestFinished(() => recorder.stop())
    const dbs = names.map((name) => createTestCouch({ url: couch.url }).db(name))
    for (const db of dbs) await db.create()
    const workers = await Promise.all(
      ['a', 'b', 'c'].map(async (name) => {
        const module = join(folder, `${name}.mjs`)
        await writeFile(module, handlersModule(recorder.url, name))
        return startWorker(name, couch.url, { SIDECAR_DATABASES: databases, SIDECAR_HANDLERS: module })
      }),
    )
    onTestFinished(async () => void (await Promise.all(workers.map((worker) => worker.kill()))))

    const drawn = () =>
      sample(
        Object.keys(mishaps).sort(() => random() - 0.5),
        STEP,
      )
    const plan = Array.from({ length: ROUNDS }, drawn).flat()
    const writing = writeJobs(dbs, PER_TYPE, plan.length)
    for (const name of plan) {
      const victim = workers[Math.floor(random() * workers.length)]!
      const began = performance.now()
      await mishaps[name]!(victim, world)
      const over = performance.now()
      await probe(dbs)
      const [took, healed] = [over - began, performance.now() - over].map((ms) => (ms / 1000).toFixed(1))
      console.log(`${name} (${victim.name}): took ${took} s, recovered ${healed} s later`)
    }
    await writing
    const docs = await untilSettled(dbs)
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
