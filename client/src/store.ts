/**
 * What this device has to remember, in one `_local` document of the local control database: which is not replicated. It
 * is written before anything is done that depends on it, so that a reload at any point goes on from there. Several tabs
 * may write it.
 */
import type { Binding } from './channels/locals.ts'
import { statusOf, type Db } from './pouch.ts'
import type { Registration } from './registration/registration.ts'

export interface Kept {
  readonly registration?: Registration
  /** Which local database belongs to which channel, and which lives of channels are over. */
  readonly locals: readonly Binding[]
  /** How many local databases there have been. */
  readonly count: number
}

export interface Store {
  /** As it was when it was last read or written here. */
  readonly kept: Kept
  /** Reads what other tabs have written. */
  load(): Promise<Kept>
  /** Writes what `next` makes of it, again if it has changed meanwhile; nothing where that is undefined. */
  update(next: (kept: Kept) => Kept | undefined): Promise<Kept>
}

const ID = '_local/couchdb-sidecar-client'

/** @param onWritten is told after each write here */
export function createStore(db: Db, onWritten: (kept: Kept, before: Kept) => void): Store {
  let kept: Kept = { locals: [], count: 0 }

  async function read(): Promise<string | undefined> {
    try {
      const { _id, _rev, ...there } = await db.get(ID)
      kept = there as unknown as Kept
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
