import { isCouchError } from './couch-errors.ts'

/**
 * Runs `change` (find, change, put) again where something else has written the document in between: it reads the document
 * anew each time.
 *
 * @param tries in all; then the last conflict is thrown
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
