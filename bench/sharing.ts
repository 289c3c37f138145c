import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Couch } from '../sidecar/couch/client.ts'
import { createRendezvous } from '../sidecar/workers/rendezvous.ts'
import { dropDatabase, fillDatabase } from './database.ts'

export interface WorkerJob {
  readonly url: string
  readonly name: string
  readonly worker: string
  /** The time that each run of the handler waits, milliseconds. 0: the handler does nothing. */
  readonly handlerMs: number
}

interface Reported {
  readonly members?: number
  readonly ran?: number
  readonly inVain?: number
  readonly inFlight?: number
}

interface Worker {
  readonly child: ChildProcess
  reported: Required<Reported>
}

const script = fileURLToPath(new URL('./worker-process.ts', import.meta.url))

function startWorker(job: WorkerJob): Worker {
  const child = fork(script, [JSON.stringify(job)], { execArgv: ['--import', 'tsx'] })
  const worker: Worker = { child, reported: { members: 0, ran: 0, inVain: 0, inFlight: 0 } }
  child.on('message', (reported: Reported) => (worker.reported = { ...worker.reported, ...reported }))
  return worker
}

const sum = (workers: readonly Worker[], what: keyof Reported) =>
  workers.reduce((all, { reported }) => all + reported[what], 0)

async function until(done: () => boolean): Promise<void> {
  while (!done()) await new Promise((resolve) => setTimeout(resolve, 5))
}

async function withWorkers<T>(
  couch: Couch,
  url: string,
  setUp: { docs: number; workers: number; handlerMs?: number },
  work: (workers: Worker[]) => Promise<T>,
) {
  const database = await fillDatabase(couch, setUp.docs, {})
  const names = Array.from({ length: setUp.workers }, (_, i) => `w${i}`)
  const workers = names.map((worker) =>
    startWorker({ url, name: database.name, worker, handlerMs: setUp.handlerMs ?? 0 }),
  )
  await until(() => workers.every(({ reported }) => reported.members === workers.length))
  const result = await work(workers)
  for (const { child } of workers) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    const exited = once(child, 'exit')
    child.send('stop')
    await exited
  }
  await dropDatabase(couch, database)
  return result
}

/** Documents per second of all workers together, and the share of documents with a lost claim. */
export const measureShared = (couch: Couch, url: string, docs: number, count: number, handlerMs: number) =>
  withWorkers(couch, url, { docs, workers: count, handlerMs }, async (workers) => {
    const began = performance.now()
    for (const { child } of workers) child.send('go')
    await until(() => sum(workers, 'ran') >= docs && sum(workers, 'inFlight') === 0)
    const seconds = (performance.now() - began) / 1000
    return { rate: docs / seconds, inVain: sum(workers, 'inVain') / docs }
  })

/** One of two workers is idle and is killed. Measures how fast the other handles its half once the death is known. */
export const measureTakeover = (couch: Couch, url: string, docs: number) =>
  withWorkers(couch, url, { docs, workers: 2 }, async ([dead, heir]) => {
    heir!.child.send('go')
    const half = docs * 0.45
    await until(() => heir!.reported.ran > half && heir!.reported.inFlight === 0)
    const before = heir!.reported.ran
    const killed = performance.now()
    dead!.child.kill('SIGKILL')
    await until(() => heir!.reported.members === 1)
    const known = performance.now()
    await until(() => heir!.reported.ran >= docs && heir!.reported.inFlight === 0)
    return { knownMs: known - killed, rate: (docs - before) / ((performance.now() - known) / 1000) }
  })

/** Over changes of a membership of about this size: the documents that moved, as a multiple of 1/n. */
export function measureChurn(members: number, changes: number): { mean: number; worst: number } {
  const docs = Array.from({ length: 10_000 }, (_, i) => `order-${i}`)
  const factors: number[] = []
  let names = Array.from({ length: members }, (_, i) => `host-${i}`)
  for (let change = 0; change < changes; change++) {
    const joins = change % 2 === 0
    const after = joins ? [...names, `late-${change}`] : names.filter((_, i) => i !== (change * 7919) % names.length)
    const [was, is] = [createRendezvous(names), createRendezvous(after)]
    const moved = docs.filter((doc) => was(doc) !== is(doc)).length / docs.length
    factors.push(moved * Math.max(names.length, after.length))
    names = after
  }
  return { mean: factors.reduce((a, b) => a + b) / factors.length, worst: Math.max(...factors) }
}
