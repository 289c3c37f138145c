/**
 * Three sidecars, each on its own node of a cluster of three, run for CHAOS_MINUTES (10): rounds of jobs with mishaps
 * drawn from all mishaps, until all jobs are settled. Between rounds an older copy may be restored. CHAOS_SEED
 * repeats the draws.
 */
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { only, FIRST_RANGE, LAST_RANGE, type FileCopy } from '../support/couchdb-binary.ts'
import { findFaketime } from '../support/faketime.ts'
import { needs } from '../support/features.ts'
import { clusterMishaps, type Scene } from './cluster-mishaps.ts'
import { boardOf, jobsOf, probe, untilSettled, writeJobs } from './jobs.ts'
import { endure, pick, startClusterWorld } from './mishaps.ts'
import { startRecorder } from './recorder.ts'
import { expectOutcomes } from './report.ts'
import { startTrio } from './trio.ts'

const seed = Number(process.env.CHAOS_SEED ?? Math.floor(Math.random() * 1e6))
const MINUTES = Number(process.env.CHAOS_MINUTES ?? 10)
const MISHAPS = 6 // per round
const PER_TYPE = 40 // number of park jobs and of retry jobs per round
const NAMES = ['jobs', ...Array.from({ length: 6 }, (_, i) => `jobs-${i}`)]
/** A guard that makes processes check each document, and slows them down. */
const GUARD = 'function (doc) { for (var i = 0; i < 5000; i++) if (doc.bad) throw { forbidden: "no" } }'

test(
  `three sidecars on a cluster lose no document, and run no unsafe handler twice, for ${MINUTES} minutes (seed ${seed})`,
  { timeout: (MINUTES + 20) * 60_000 },
  async () => {
    needs('process table')
    const world = await startClusterWorld(seed)
    if (!findFaketime()) console.log('no clock jumps: libfaketime is not installed here')
    const { nodes, folder, random } = world
    const recorder = await startRecorder(join(folder, 'effects'))
    onTestFinished(() => recorder.stop())
    const urls = nodes.map(({ url }) => url)
    const board = boardOf(urls, NAMES)
    for (const db of board[0]!) {
      await db.create()
      await db.put({ _id: '_design/guard', validate_doc_update: GUARD })
    }
    const workers = await startTrio(world, recorder.url, { SIDECAR_DATABASES: 'jobs,jobs-*' })
    const scene: Scene = { ...world, workers, board }

    let left: Copies[] = []
    const until = performance.now() + MINUTES * 60_000
    for (let round = 0; performance.now() < until; round++) {
      left = [...left.slice(-1), await Promise.all(nodes.map((node) => node.copy()))] // keeps the last two copies
      const writing = writeJobs(board, jobsOf(PER_TYPE, `${round}-`), MISHAPS)
      const names = Object.keys(clusterMishaps)
        .sort(() => random() - 0.5)
        .slice(0, MISHAPS)
      for (const name of names) {
        await endure(name, clusterMishaps[name]!, pick(random, workers), scene)
      }
      await writing
      const minutes = (MINUTES - (until - performance.now()) / 60_000).toFixed(1)
      console.log(`round ${round}, after ${minutes} minutes`)
      expectOutcomes(await untilSettled(board), await recorder.effects())
      if (random() < 0.5) left = await putBack(pick(random, left), scene)
    }
    for (const worker of workers) expect(await worker.stop(), 'the exit code of a stop').toBe(0)
  },
)

/** The copies of each node. */
type Copies = readonly FileCopy[]

/** Returns the copies that may still be restored. */
async function putBack(copies: Copies, { nodes, whole, random, board }: Scene): Promise<Copies[]> {
  const [what, part] = pick(random, [
    ['everything', (copy: FileCopy) => copy],
    ['the databases of the jobs', (copy: FileCopy) => only(copy, NAMES)],
    ['their first range', (copy: FileCopy) => only(copy, NAMES, FIRST_RANGE)],
    ['their last range', (copy: FileCopy) => only(copy, NAMES, LAST_RANGE)],
  ] as const)
  console.log(`putting back an older copy of ${what}`)
  for (const node of nodes) await node.kill()
  await Promise.all(nodes.map((node, i) => node.restart(part(copies[i]!))))
  await whole()
  const began = performance.now()
  await probe(board)
  console.log(`recovered ${((performance.now() - began) / 1000).toFixed(1)} s later`)
  return [copies]
}
