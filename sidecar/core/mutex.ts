/** Runs one task at a time, in the order of the calls. A task that fails does not stop the next. */
export type Mutex = <T>(work: () => T | Promise<T>) => Promise<T>

export function createMutex(): Mutex {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const result = last.then(work)
    last = result.catch(() => undefined)
    return result
  }
}

/** Like `createMutex`, with one mutex for each key. */
export function createMutexByKey(): <T>(key: string, work: () => T | Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>()
  return (key, work) => {
    const result = (last.get(key) ?? Promise.resolve()).then(work)
    const settled = result
      .catch(() => undefined)
      .finally(() => {
        if (last.get(key) === settled) last.delete(key)
      })
    last.set(key, settled)
    return result
  }
}
