import { isCouchError } from './couch-errors.ts'

/**
 * Repeats `change` (find, change, put) if another writer has written the document in between. `change` must read the
 * document again each time.
 *
 * @param tries maximum number of calls; the conflict of the last one is thrown
 * @example
 * await repeatOnConflict(10, async () => database.put(next(await database.find(id))))
 */
export async function repeatOnConflict<T>(tries: number, change: () => Promise<T>): Promise<T> {
  for (let left = tries - 1; ; left--) {
    try {
      return await change()
    } catch (thrown) {
      if (!isCouchError(thrown, 'conflict') || left <= 0) throw thrown
    }
  }
}
