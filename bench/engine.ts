import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Machines } from '../ddocs/machine.ts'

export interface EngineJob {
  readonly url: string
  readonly name: string
  readonly mode: 'safe' | 'unsafe'
  readonly count: number
  readonly machines: Machines
}

export interface EngineResult {
  /** From the start of the engine to the last save, seconds. */
  readonly seconds: number
  readonly ran: number
  readonly peakBytes: number
}

/** Runs the sidecar's engine over the documents that wait, in a process of its own. */
export async function runEngine(job: EngineJob): Promise<EngineResult> {
  const script = fileURLToPath(new URL('./engine-process.ts', import.meta.url))
  const child = fork(script, [JSON.stringify(job)], { execArgv: ['--import', 'tsx'] })
  const exited = once(child, 'exit')
  const [result] = (await Promise.race([once(child, 'message'), exited])) as [EngineResult | number]
  if (typeof result !== 'object') throw new Error(`the engine's process ended with ${String(result)}`)
  await exited
  if (result.ran !== job.count) throw new Error(`${result.ran} handlers ran for ${job.count} documents`)
  return result
}
