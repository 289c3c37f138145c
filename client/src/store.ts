/**
 * Stores the data of this device in one `_local` document of the local control database, which is not replicated. The
 * document is written before any step that depends on it: after a reload at any point, the client resumes. Several tabs
 * may write it.
 */
import type { Binding } from './channels/locals.ts'
import { statusOf, type Db } from './pouch.ts'
import type { Registration } from './registration/registration.ts'

export interface Kept {
  readonly registration?: Registration
  /** Which local database belongs to which channel, and which lives of channels are over. */
  readonly locals: readonly Binding[]
  /** Number of local databases created so far. */
  readonly count: number
}

export interface Store {
  /** The data at the last read or write in this tab. */
  readonly kept: Kept
  /** Reads what other tabs have written. */
  load(): Promise<Kept>
  /** Writes the result of `next`, and repeats this after a conflict. Writes nothing if the result is undefined. */
  update(next: (kept: Kept) => Kept | undefined): Promise<Kept>
}

const ID = '_local/couchdb-sidecar-client'

/** @param onWritten called after each write in this tab */
export function createStore(db: Db, onWritten: (kept: Kept, before: Kept) => void): Store {
  let kept: Kept = { locals: [], count: 0 }

  async function read(): Promise<string | undefined> {
    try {
      const { _id, _rev, ...stored } = await db.get(ID)
      kept = stored as unknown as Kept
      return _rev
    } catch (thrown) {
      if (statusOf(thrown) !== 404) throw thrown
      return undefined
    }
  }

  return {
    get kept() {
      return kept
    },
    async load() {
      await read()
      return kept
    },
    async update(next) {
      for (;;) {
        const _rev = await read()
        const before = kept
        const made = next(before)
        if (!made) return before
        try {
          await db.put({ ...made, _id: ID, ...(_rev !== undefined && { _rev }) })
          kept = made
          onWritten(made, before)
          return made
        } catch (thrown) {
          if (statusOf(thrown) !== 409) throw thrown // another tab was faster
        }
      }
    },
  }
}
