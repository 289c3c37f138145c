import { Semaphore } from '../core/semaphore.ts'

/** Runs the work when a connection is free; `first` before all work that waits without it. */
export type WithConnection = <T>(work: () => Promise<T>, first?: boolean, signal?: AbortSignal) => Promise<T>

/** @param reserved how many of `count` only work with `first` may take, so that slow answers never keep it waiting */
export function createConnectionLimit(count: number, reserved: number): WithConnection {
  const all = new Semaphore(() => count)
  const unreserved = new Semaphore(() => Math.max(1, count - reserved))
  return (work, first, signal) => {
    const run = () => all.run(work, first, signal)
    return first ? run() : unreserved.run(run, false, signal)
  }
}
