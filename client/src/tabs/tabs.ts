/**
 * The tabs of one origin have the same databases: one of them, the leader, registers and syncs. Where there are no locks,
 * everyone leads; and in Node, which has locks, but of one process: its databases are not those of an origin.
 */
import type { Syncs } from '../engine.ts'
import type { Events } from '../client-status.ts'

export type Message =
  /** The `_local` document was written. */
  | { readonly kind: 'kept' }
  /** A page uses this channel. */
  | { readonly kind: 'touched'; readonly id: string }
  /** To the leader: a page is looked at. */
  | { readonly kind: 'seen' }
  /** From the leader. */
  | { readonly kind: 'syncs'; readonly syncs: Syncs }
  | { readonly kind: 'refused'; readonly refused: Events['refused'] }
  /** To the leader: a tab was opened. */
  | { readonly kind: 'hello' }
  /** All that is here is being destroyed, or was. */
  | { readonly kind: 'destroyed' }

export interface Tabs {
  tell(message: Message): void
  /** Runs `work` when this tab is the leader; at once, or when the one before it closes. Until the signal aborts. */
  lead(work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void>
  /** Runs `work` while no tab leads: the leader has ended its own by then, or ends it in this. */
  alone(work: () => Promise<void>): Promise<void>
  close(): void
}

/** @param app names the app's databases: another app of the same origin has other tabs */
export function openTabs(app: string, hear: (message: Message) => void): Tabs {
  const name = `couchdb-sidecar-client:${app}`
  const { navigator, location } = globalThis as {
    readonly navigator?: Partial<Navigator>
    readonly location?: Location
  }
  const locks = location && navigator?.locks
  if (!locks)
    return {
      tell: () => undefined,
      lead: (work, signal) => work(signal),
      alone: (work) => work(),
      close: () => undefined,
    }
  const channel = new BroadcastChannel(name)
  channel.onmessage = ({ data }) => hear(data as Message)
  let isClosed = false
  let isLeader = false
  /** For its end the lock is kept. */
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
    tell(message) {
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
