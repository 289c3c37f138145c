/**
 * Elects a leader: the tabs of one origin share their databases, and only the leader registers and syncs. Without
 * locks, every tab leads. So does every client in Node: its locks cover one process only, and its databases belong to
 * no origin.
 */
import type { Syncs } from '../engine.ts'
import type { Events } from '../client-status.ts'

export type Message =
  /** The `_local` document was written. */
  | { readonly kind: 'kept' }
  /** A page uses this channel. */
  | { readonly kind: 'touched'; readonly id: string }
  /** To the leader: a page is visible. */
  | { readonly kind: 'seen' }
  /** From the leader. */
  | { readonly kind: 'syncs'; readonly syncs: Syncs }
  | { readonly kind: 'refused'; readonly refused: Events['refused'] }
  /** To the leader: a tab was opened. */
  | { readonly kind: 'hello' }
  /** All local data is being destroyed, or is destroyed. */
  | { readonly kind: 'destroyed' }

export interface Tabs {
  send(message: Message): void
  /** Runs `work` once this tab is the leader: at once, or when the last leader closes. Ends when the signal aborts. */
  lead(work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void>
  /** Runs `work` while no tab leads. The last leader has ended its own work by then, or ends it in this `work`. */
  alone(work: () => Promise<void>): Promise<void>
  close(): void
}

/** @param app names the app's databases: another app of the same origin has its own tabs */
export function openTabs(app: string, onMessage: (message: Message) => void): Tabs {
  const name = `couchdb-sidecar-client:${app}`
  const { navigator, location } = globalThis as {
    readonly navigator?: Partial<Navigator>
    readonly location?: Location
  }
  const locks = location && navigator?.locks
  if (!locks)
    return {
      send: () => undefined,
      lead: (work, signal) => work(signal),
      alone: (work) => work(),
      close: () => undefined,
    }
  const channel = new BroadcastChannel(name)
  channel.onmessage = ({ data }) => onMessage(data as Message)
  let isClosed = false
  let isLeader = false
  /** The lock is held until this ends. */
  let last = Promise.resolve()

  async function holdWhile(work: () => Promise<void>): Promise<void> {
    isLeader = true
    try {
      await work()
    } finally {
      await last.catch(() => undefined) // its caller gets the error
      isLeader = false
    }
  }

  return {
    send(message) {
      const to = isClosed ? new BroadcastChannel(name) : channel
      to.postMessage(message)
      if (isClosed) to.close()
    },
    async lead(work, signal) {
      try {
        await locks.request(name, { signal }, () => holdWhile(() => work(signal)))
      } catch (thrown) {
        if (!signal.aborted) throw thrown
      }
    },
    async alone(work) {
      if (!isLeader) return locks.request(name, work)
      last = work()
      return last
    },
    close() {
      isClosed = true
      channel.close()
    },
  }
}
