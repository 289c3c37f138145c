/** Runs one piece of work at a time, in the order asked for. A piece that fails does not stop the next. */
export type Exclusive = <T>(work: () => T | Promise<T>) => Promise<T>

export function createExclusive(): Exclusive {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const result = last.then(work)
    last = result.catch(() => undefined)
    return result
  }
}
