/**
 * The work of one tab for all tabs: registers the device, and syncs the user's control database and channels. The
 * engine decides nothing by itself: `settle` starts and stops syncs by the stored data and the documents.
 */
import { channelsHere } from './channels/here.ts'
import type { View } from './control/view.ts'
import type { Db, Pouch } from './pouch.ts'
import type { Hashing } from './registration/credentials.ts'
import type { Inbox } from './registration/inbox.ts'
import { createRegistrar } from './registration/registrar.ts'
import type { Registration } from './registration/registration.ts'
import { OFF, type Events, type Failure, type SyncStatus } from './client-status.ts'
import type { Store } from './store.ts'
import { createLink } from './sync/link.ts'
import { createLinks, type Wanted } from './sync/links.ts'
import type { Target } from './sync/remote.ts'
import { createSemaphore } from './sync/semaphore.ts'

/** Status of all syncs. */
export interface Syncs {
  readonly control: SyncStatus
  /** By channel id. */
  readonly channels: Readonly<Record<string, SyncStatus>>
  /** Why the inbox does not answer, or stored data cannot be read or written. */
  readonly failure?: Failure
}

export const NO_SYNCS: Syncs = { control: OFF, channels: {} }

export interface EngineOptions {
  readonly PouchDB: Pouch
  readonly inbox: Inbox
  readonly store: Store
  readonly view: View
  readonly openLocal: (name: string) => Db
  readonly hashing?: Hashing
  /** Address of CouchDB. Default: as the inbox reports. */
  readonly couchdb?: string
  readonly live: number
  readonly roundMs: number
  readonly onChange: () => void
  readonly onRefused: (refused: Events['refused']) => void
}

export interface Engine {
  readonly syncs: Syncs
  /** Registers, and syncs, until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
  /** Call this when documents or stored data have changed. */
  settle(): void
  /** Call this when something must be sent to the inbox. */
  register(): void
  touch(id: string): void
  wake(how: { readonly hard: boolean }): void
}

/** Name of the local control database. */
export const CONTROL = 'control'
/** Maximum number of concurrent rounds. */
const SLOTS = 2

export function createEngine(options: EngineOptions): Engine {
  const { PouchDB, inbox, store, view, openLocal, hashing, roundMs, onChange, onRefused } = options
  const semaphore = createSemaphore(SLOTS)
  let failure: Failure | undefined
  let isRunning = false

  const registrar = createRegistrar({
    ...{ store, inbox, ...(hashing && { hashing }) },
    onFailure(next) {
      failure = next
      onChange()
    },
  })

  const openLink = ({ local, target }: Wanted, onNews: () => void, refused: { readonly channel?: string }) =>
    createLink({
      ...{ PouchDB, local: openLocal(local), target, semaphore, roundMs, onNews },
      onChange() {
        onChange()
        if (control.statusOf(CONTROL).failure) registrar.check() // the device may be revoked, or the server moved
      },
      onRefused: (id, reason) => onRefused({ ...refused, id, reason }),
    })
  const control = createLinks({ live: 1, open: (wanted, onNews) => openLink(wanted, onNews, {}) })
  const channels = createLinks({
    live: options.live,
    open: (wanted, onNews) => openLink(wanted, onNews, { channel: wanted.id }),
  })

  function wantedChannels(targetOf: (database: string) => Target): Wanted[] {
    const here = channelsHere(store.kept, view)
    return view.channels.flatMap((channel) => {
      const { place, local, database } = here(channel)
      // Only after their binding is stored.
      if (place !== 'synced' || database === undefined || local?.database !== database) return []
      return [{ id: channel._id, local: local.name, target: targetOf(database) }]
    })
  }

  function settle(): void {
    if (!isRunning) return
    const { registration } = store.kept
    const targetOf = registration && targetsOf(registration, options.couchdb)
    const database = registration?.database
    if (!targetOf || database === undefined || registration.user === undefined) {
      control.set([])
      channels.set([])
      return
    }
    control.set([{ id: CONTROL, local: CONTROL, target: targetOf(database) }])
    channels.set(wantedChannels(targetOf))
  }

  return {
    get syncs() {
      const ids = view.channels.map(({ _id }) => _id)
      return {
        control: control.statusOf(CONTROL),
        channels: Object.fromEntries(ids.map((id) => [id, channels.statusOf(id)])),
        ...(failure && { failure }),
      }
    },
    async run(signal) {
      isRunning = true
      try {
        settle()
        await registrar.run(signal)
      } finally {
        isRunning = false
        await Promise.all([control.stop(), channels.stop()])
      }
    },
    settle,
    register: () => registrar.wake(),
    touch: (id) => channels.touch(id),
    wake(how) {
      registrar.wake()
      control.wake(how)
      channels.wake(how)
    },
  }
}

/**
 * Addresses of this user's databases; undefined without access to them. The password goes only to the server that the
 * inbox named, even if documents name another one.
 */
function targetsOf(
  { state, user, password, database, syncpoint }: Registration,
  couchdb: string | undefined,
): ((database: string) => Target) | undefined {
  if (state !== 'active' || user === undefined || database === undefined || syncpoint === undefined) return undefined
  const base = couchdb ?? syncpoint.slice(0, syncpoint.lastIndexOf('/'))
  return (name) => ({ url: `${base}/${encodeURIComponent(name)}`, user, password })
}
