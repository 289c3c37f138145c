import { untilAny } from './until-any.ts'

export type Part = (signal: AbortSignal) => Promise<void>

/**
 * Runs all parts until the signal aborts. If one throws, which only a bug causes, the others are stopped. The error is
 * thrown when all have ended.
 */
export async function together(parts: readonly Part[], signal: AbortSignal): Promise<void> {
  const broken = new AbortController()
  await untilAny([signal, broken.signal], async (stopping) => {
    const run = (part: Part) =>
      part(stopping).catch((thrown: unknown) => {
        if (!stopping.aborted) broken.abort(thrown)
      })
    await Promise.all(parts.map(run))
  })
  broken.signal.throwIfAborted()
}
