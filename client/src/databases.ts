import type { Db, Pouch } from './pouch.ts'

/** The databases of one client on this device, each opened once. */
export interface Databases {
  open(local: string): Db
  destroy(local: string): Promise<void>
  /** Closes all databases for good. */
  close(): Promise<void>
  /** Call this after `close`. */
  destroyAll(locals: readonly string[]): Promise<void>
}

/** The databases' names begin with the client's name. */
export function openDatabases(PouchDB: Pouch, name: string): Databases {
  const opened = new Map<string, Db>()
  const create = (local: string) => new PouchDB(`${name}-${local}`)

  function open(local: string): Db {
    const db = opened.get(local) ?? create(local)
    opened.set(local, db)
    return db
  }

  return {
    open,
    async destroy(local) {
      await open(local).destroy()
      opened.delete(local)
    },
    async close() {
      // A database that cannot be closed is already broken.
      await Promise.allSettled([...opened.values()].map((one) => one.close()))
    },
    async destroyAll(locals) {
      for (const local of locals) await create(local).destroy()
    },
  }
}
