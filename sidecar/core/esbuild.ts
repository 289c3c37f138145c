import { stop } from 'esbuild'

let users = 0

/**
 * Runs work that uses esbuild. That keeps a process for the next time, which here may be days away: the last one out
 * ends it. Not for the synchronous functions of esbuild: they keep a thread with a process of its own, which is no
 * longer reaped once it is stopped.
 */
export async function withEsbuild<T>(work: () => Promise<T>): Promise<T> {
  users += 1
  try {
    return await work()
  } finally {
    users -= 1
    if (users === 0) await stop()
  }
}
