/**
 * Keeps a local database and its remote one in sync until it is stopped. It syncs live or in rounds. In rounds, one
 * session follows the other, each in a slot; a local write starts the next one sooner. After any failure, the link
 * retries.
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
  /** Limits concurrent rounds. */
  readonly semaphore: Semaphore
  readonly roundMs: number
  readonly onChange: () => void
  /** Called after a local write, or when documents arrive in a round. */
  readonly onNews: () => void
  readonly onRefused: (id: string, reason: string) => void
}

export interface Link {
  readonly status: SyncStatus
  /** Runs until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
  follow(live: boolean): void
  /** Retries at once if the link waits after a failure, and restarts a silent session; with `hard`, any session. */
  wake(how: { readonly hard: boolean }): void
}

/** How long local writes are gathered. */
const GATHER_MS = 250
/** Consecutive refusals before the status shows them: a new role takes a moment to apply. */
const PATIENCE = 3

export function createLink(options: LinkOptions): Link {
  const { local, semaphore, roundMs, onChange, onNews, onRefused } = options
  const bell = createBell()
  const extents = createExtents(local)
  let status = WAITING
  /** The requested mode; the current session may still have the other one. */
  let live = false
  let failures = 0
  /** An older copy of the remote database was restored: everything must be compared. */
  let isRestored = false
  let session = new AbortController()
  let isQueued = false
  /** Releases the slot of a round. */
  let release: (() => void) | undefined
  /** Remote database of the current session. */
  let remote: Remote | undefined
  /** Revisions written locally, neither pulled nor pushed; and pulled ones that the local feed has not reported yet. */
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
    // No longer live: the rest is copied in the next round.
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
        isRestored = await extents.look(seq).catch(() => false) // replications report a local database that fails
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
      return { kind: 'failed', failure: { code: 'failed', reason: String(thrown) } } // from the local database, or an incomplete PouchDB
    } finally {
      remote = undefined
      endTurn()
      signal.removeEventListener('abort', abort)
    }
  }

  /** Pause before the next session, milliseconds. */
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

  /** Sends local writes soon, in rounds. The local feed also reports documents that were just pulled. */
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
      if (signal.aborted) return // aborted before its turn: no event would end what begins now
      listen(signal)
      while (!signal.aborted) await bell.wait(restAfter(await once(signal)), signal)
      set({ state: 'off' })
    },
    follow(wanted) {
      if (wanted === live) return
      live = wanted
      // The current batch is copied to its end.
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
