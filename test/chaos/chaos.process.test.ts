/**
 * Three sidecars, on one database and on many, under a series of mishaps. `npm run test:chaos` takes minutes; as
 * part of `npm test` every second drawn mishap happens, on one database. CHAOS_SEED repeats a run, as far as
 * processes can repeat one.
 */
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { amount, sample } from '../support/thorough.ts'
import { boardOf, jobsOf, untilSettled, writeJobs } from './jobs.ts'
import { endure, mishaps, pick, startWorld } from './mishaps.ts'
import { startRecorder } from './recorder.ts'
import { expectOutcomes } from './report.ts'
import { startTrio } from './trio.ts'

const PER_TYPE = amount(50, 2000) // the number of park jobs, and of retry jobs; the number of safe jobs is their sum
const ROUNDS = amount(1, 4)
const STEP = 2 // every second drawn mishap happens
const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 1e6))

const worlds = [
  ['on one database', 'jobs', ['jobs']],
  ['on thirty databases of a glob', 'jobs-*', Array.from({ length: 30 }, (_, i) => `jobs-${i}`)],
] as const

test.each(sample(worlds, worlds.length))(
  `under mishaps to three sidecars %s, no document is lost and no unsafe handler runs twice (seed ${seed})`,
  { timeout: 1_800_000 },
  async (_, databases, names) => {
    const world = await startWorld(seed)
    const { nodes, folder, random } = world
    const recorder = await startRecorder(join(folder, 'effects'))
    onTestFinished(() => recorder.stop())
    const board = boardOf(
      nodes.map(({ url }) => url),
      names,
    )
    for (const db of board[0]!) await db.create()
    const workers = await startTrio(world, recorder.url, { SIDECAR_DATABASES: databases })

    const drawn = () =>
      sample(
        Object.keys(mishaps).sort(() => random() - 0.5),
        STEP,
      )
    const plan = Array.from({ length: ROUNDS }, drawn).flat()
    const writing = writeJobs(board, jobsOf(PER_TYPE), plan.length)
    for (const name of plan) await endure(name, mishaps[name]!, pick(random, workers), { ...world, board })
    await writing
    expectOutcomes(await untilSettled(board), await recorder.effects())
    for (const worker of workers) expect(await worker.stop(), 'the exit code of a stop').toBe(0)
  },
)
