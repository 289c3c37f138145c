export interface Closable {
  close(): Promise<void>
}

/** Registers a part that must be closed at the end; returns the part. */
export type Acquire = <T extends Closable>(part: T) => T

/**
 * Runs the work, then closes all acquired parts, the last first. A part that fails to close does not keep another open.
 * Throws the first error of all.
 */
export async function withAcquired(work: (acquire: Acquire) => Promise<void>): Promise<void> {
  const acquired: Closable[] = []
  const errors: unknown[] = []
  const acquire: Acquire = (part) => {
    acquired.unshift(part)
    return part
  }
  const keep = (thrown: unknown) => void errors.push(thrown)
  await work(acquire).catch(keep)
  for (const part of acquired) await part.close().catch(keep)
  if (errors.length > 0) throw errors[0]
}
