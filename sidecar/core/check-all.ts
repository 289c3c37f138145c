import { ConfigError } from './errors.ts'

/**
 * The results of all checks, or the faults of all of them at once: nobody wants to mend one to be told of the next.
 *
 * @throws ConfigError, or the first error that is none
 */
export async function checkAll<const T extends readonly unknown[]>(checks: {
  readonly [K in keyof T]: () => T[K] | Promise<T[K]>
}): Promise<T> {
  const settled = await Promise.allSettled(checks.map(async (check) => check()))
  const thrown = settled.flatMap((result): unknown[] => (result.status === 'rejected' ? [result.reason] : []))
  const faults = thrown.flatMap((error) => {
    if (error instanceof ConfigError) return error.faults
    throw error
  })
  if (faults.length > 0) throw new ConfigError(faults)
  return settled.map((result) => (result as PromiseFulfilledResult<unknown>).value) as unknown as T
}
