/**
 * One local database and its remote one, kept the same until told to stop. Followed live, or in rounds: then one
 * session after the other, each in a slot, sooner when something was written here. After whatever went wrong, it tries again.
 */
import type { Db, Pouch } from '../pouch.ts'
import { WAITING, type Failure, type SyncStatus } from '../client-status.ts'
import { backoffMs, createBell } from '../time.ts'
import { createExtents } from './extent.ts'
import { openRemote, type Remote, type Target } from './remote.ts'
import { runSession, type Copied, type Ended } from './session.ts'
import type { Semaphore } from './semaphore.ts'

export interface LinkOptions {
  readonly PouchDB: Pouch
  readonly local: Db
  readonly target: Target
  /** For rounds. */
  readonly semaphore: Semaphore
  readonly roundMs: number
  readonly onChange: () => void
  /** Something was written here, or has come in a round. */
  readonly onNews: () => void
  readonly onRefused: (id: string, reason: string) => void
}

export interface Link {
  readonly status: SyncStatus
  /** Until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
  follow(live: boolean): void
  /** Tries at once what waits to be tried again, and begins anew what hears nothing; with `hard` whatever may hang. */
  wake(how: { readonly hard: boolean }): void
}

/** So long it is gathered what is written here. */
const GATHER_MS = 250
/** Refusals in a row before they are shown: a role that was just given is there a moment later. */
const PATIENCE = 3

export function createLink(options: LinkOptions): Link {
  const { local, semaphore, roundMs, onChange, onNews, onRefused } = options
  const bell = createBell()
  const extents = createExtents(local)
  let status = WAITING
  /** As it is wanted; the session that runs may still be of the other kind. */
  let live = false
  let failures = 0
  /** An older copy of the remote database was put back: everything is to be compared. */
  let isRestored = false
  let session = new AbortController()
  let isQueued = false
  /** Gives back the slot of a round. */
  let release: (() => void) | undefined
  /** Of the session that runs. */
  let remote: Remote | undefined
  /** What was written here and was neither pulled nor pushed; and what was pulled, but is not told of as written yet. */
  const unsent = new Set<string>()
  const pulled = new Set<string>()

  function set(next: Partial<SyncStatus>): void {
    const { failure: _before, ...rest } = status
    status = { ...rest, ...next }
    onChange()
  }

  function copied({ direction, docs, revisions, pending }: Copied): void {
    for (const revision of revisions) {
      if (!unsent.delete(revision) && direction === 'pull') pulled.add(revision)
    }
    set({
      state: 'syncing',
      ...(direction === 'pull' && { read: status.read + docs, pending: pending ?? 0 }),
      ...(direction === 'push' && { written: status.written + docs }),
    })
    if (!live && direction === 'pull' && docs > 0) onNews()
    // It was followed live, and is no more: the rest is copied when it is its turn.
    if (live || release || pending === 0) return
    set({ state: 'waiting' })
    session.abort()
  }

  function endTurn(): void {
    release?.()
    release = undefined
  }

  function even(state: 'live' | 'resting'): void {
    failures = 0
    set({ state, pending: 0, syncedAt: new Date().toISOString() })
  }

  const stateOf = ({ code }: Failure): SyncStatus['state'] => {
    if (code === 'offline') return 'offline'
    if (code !== 'denied') return 'failing'
    return failures >= PATIENCE ? 'denied' : 'waiting'
  }

  async function once(signal: AbortSignal): Promise<Ended> {
    session = new AbortController()
    pulled.clear()
    const abort = () => session.abort()
    signal.addEventListener('abort', abort)
    const isLive = live
    isQueued = !isLive
    if (!isLive) release = await semaphore.take(session.signal)
    isQueued = false
    try {
      const anew = isRestored
      const onSeq = async (seq: unknown) => {
        if (isRestored) return
        isRestored = await extents.look(seq).catch(() => false) // of a local database that fails its replications tell
        if (isRestored) session.abort()
      }
      remote = openRemote(options.PouchDB, options.target, { onSeq })
      return await runSession({
        local,
        remote,
        live: isLive,
        anew,
        onBegun() {
          if (!anew) return
          extents.forget()
          isRestored = false
        },
        signal: session.signal,
        onCopied: copied,
        onRefused,
        onEven() {
          if (!isLive) return
          even(live ? 'live' : 'resting')
          if (!live) session.abort()
        },
      })
    } catch (thrown) {
      return { kind: 'failed', failure: { code: 'failed', reason: String(thrown) } } // by the local database, or by a PouchDB that lacks something
    } finally {
      remote = undefined
      endTurn()
      signal.removeEventListener('abort', abort)
    }
  }

  /** How long to rest, milliseconds. */
  function restAfter(ended: Ended): number {
    const restMs = roundMs * (0.75 + Math.random() / 2)
    switch (ended.kind) {
      case 'done':
        even('resting')
        return live ? 0 : restMs
      case 'aborted':
        return status.state === 'resting' && !isRestored ? restMs : 0
      case 'failed':
        failures += 1
        set({ state: stateOf(ended.failure), failure: ended.failure })
        return backoffMs(failures)
    }
  }

  /** In rounds, what is written here is sent soon. Rows of what was just pulled come, too. */
  function listen(signal: AbortSignal): void {
    const changes = local.changes({ since: 'now', live: true })
    let gathering: ReturnType<typeof setTimeout> | undefined
    changes.on('change', ({ id, changes }) => {
      for (const { rev } of changes) {
        if (!pulled.delete(`${id} ${rev}`)) unsent.add(`${id} ${rev}`)
      }
      gathering ??= setTimeout(() => {
        gathering = undefined
        if (unsent.size === 0) return
        unsent.clear()
        onNews()
        if (!live) bell.ring()
      }, GATHER_MS)
    })
    signal.addEventListener('abort', () => {
      clearTimeout(gathering)
      changes.cancel()
    })
  }

  return {
    get status() {
      return status
    },
    async run(signal) {
      if (signal.aborted) return // before its turn came: nothing ends what is begun now
      listen(signal)
      while (!signal.aborted) await bell.wait(restAfter(await once(signal)), signal)
      set({ state: 'off' })
    },
    follow(wanted) {
      if (wanted === live) return
      live = wanted
      // The batch that is being copied is copied to its end.
      if (isQueued || (!live && status.state === 'live')) session.abort()
      if (live) {
        endTurn()
        bell.ring()
      } else if (status.state === 'live') set({ state: 'resting' })
    },
    wake({ hard }) {
      if (hard || remote?.hangs()) session.abort()
      else if (failures === 0) return
      failures = 0
      bell.ring()
    },
  }
}
