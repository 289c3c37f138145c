/** Syncs several databases: chooses which sync live, and which in rounds. */
import { OFF, type SyncStatus } from '../client-status.ts'
import type { Link } from './link.ts'
import type { Target } from './remote.ts'

/** A database to sync. Another local database, address or user needs another link. */
export interface Wanted {
  readonly id: string
  /** Name of the local database, without the app's prefix. */
  readonly local: string
  readonly target: Target
}

export interface LinksOptions {
  /** How many databases sync live. */
  readonly live: number
  /** @param onNews called after activity in the database */
  readonly open: (wanted: Wanted, onNews: () => void) => Link
}

export interface Links {
  /** Syncs these databases and no others. */
  set(wanted: readonly Wanted[]): void
  /** The user opens this database: it syncs live from now on. */
  touch(id: string): void
  statusOf(id: string): SyncStatus
  wake(how: { readonly hard: boolean }): void
  /** Resolves when no link runs any more. */
  stop(): Promise<void>
}

interface Running {
  readonly wanted: Wanted
  readonly link: Link
  readonly stopping: AbortController
  /** Resolves when the link has ended. */
  readonly ended: Promise<void>
}

/** A live database that is quiet for so long gives its place to an active one. */
const QUIET_MS = 10_000

export function createLinks({ live, open }: LinksOptions): Links {
  const running = new Map<string, Running>()
  /** Time of the last activity, by the clock of this page. Also kept for databases that do not run. */
  const touched = new Map<string, number>()
  /** The end of the last link of each local database, by name. */
  const ending = new Map<string, Promise<void>>()

  function start(wanted: Wanted): void {
    const link = open(wanted, () => hasNews(wanted.id))
    const stopping = new AbortController()
    const before = ending.get(wanted.local) ?? Promise.resolve()
    const ended = before.then(() => link.run(stopping.signal))
    ending.set(wanted.local, ended)
    running.set(wanted.id, { wanted, link, stopping, ended })
  }

  function stop(id: string): void {
    const one = running.get(id)
    one?.stopping.abort()
    running.delete(id)
  }

  const timeOf = (id: string) => touched.get(id) ?? 0

  /** Latest activity first; at equal times, the older link first. */
  const ranked = () => [...running.keys()].sort((one, other) => timeOf(other) - timeOf(one))

  function choose(): void {
    for (const [index, id] of ranked().entries()) running.get(id)!.link.follow(index < live)
  }

  function hasNews(id: string): void {
    const ids = ranked()
    const last = ids[live - 1]
    const isFull = last !== undefined && ids.indexOf(id) >= live
    if (isFull && performance.now() - timeOf(last) < QUIET_MS) return
    touched.set(id, performance.now())
    choose()
  }

  return {
    set(all) {
      const wantedById = new Map(all.map((one) => [one.id, one]))
      for (const [id, { wanted }] of running) {
        const next = wantedById.get(id)
        if (!next || !isSame(next, wanted)) stop(id)
      }
      for (const wanted of all) if (!running.has(wanted.id)) start(wanted)
      choose()
    },
    touch(id) {
      touched.set(id, performance.now())
      choose()
    },
    statusOf: (id) => running.get(id)?.link.status ?? OFF,
    wake(how) {
      for (const { link } of running.values()) link.wake(how)
    },
    async stop() {
      for (const id of [...running.keys()]) stop(id)
      await Promise.all(ending.values())
    },
  }
}

const isSame = (one: Wanted, other: Wanted): boolean =>
  one.local === other.local && one.target.url === other.target.url && one.target.user === other.target.user
