import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Machines } from '../ddocs/machine.ts'

export interface EngineJob {
  readonly url: string
  readonly name: string
  readonly mode: 'safe' | 'unsafe'
  readonly count: number
  readonly machines: Machines
  /** With a key that every thousandth document shares, and a limit that is never reached. */
  readonly hasOptions?: boolean
  /** Writes a document for each ended entry, in databases with this prefix. */
  readonly history?: string
}

export interface EngineResult {
  /** From the start of the engine to the last save, seconds. */
  readonly seconds: number
  /** Processor time of its process meanwhile. Versions before 2026-11-26 do not report it. */
  readonly cpuSeconds?: number
  readonly ran: number
  readonly peakBytes: number
}

/** Runs the engine of the version in this folder over the pending documents, in a separate process. */
export async function runEngine(folder: string, job: EngineJob): Promise<EngineResult> {
  const script = join(folder, 'bench/engine-process.ts')
  const child = fork(script, [JSON.stringify(job)], { cwd: folder, execArgv: ['--import', 'tsx'] })
  const exited = once(child, 'exit')
  const [result] = (await Promise.race([once(child, 'message'), exited])) as [EngineResult | number]
  if (typeof result !== 'object') throw new Error(`the engine's process ended with ${String(result)}`)
  await exited
  if (result.ran !== job.count) throw new Error(`${result.ran} handlers ran for ${job.count} documents`)
  return result
}
