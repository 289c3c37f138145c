import { statusOf, type Db, type StoredDoc } from '../pouch.ts'

type Fields = Readonly<Record<string, unknown>>

/**
 * Writes the result of `next` for a document, and repeats this after a conflict. Writes nothing if the result is
 * undefined. Leaves out the sidecar's fields about the former state.
 */
export async function change(
  db: Db,
  id: string,
  next: (before: Fields | undefined) => Fields | undefined,
): Promise<void> {
  for (;;) {
    const before = await find(db, id)
    const made = next(before)
    if (!made) return
    const { docstate: _entry, error: _error, ...fields } = made
    try {
      await db.put({ ...fields, _id: id, ...(before && { _rev: before._rev }) })
      return
    } catch (thrown) {
      if (statusOf(thrown) !== 409) throw thrown
    }
  }
}

async function find(db: Db, id: string): Promise<StoredDoc | undefined> {
  try {
    return await db.get(id)
  } catch (thrown) {
    if (statusOf(thrown) === 404) return undefined
    throw thrown
  }
}
