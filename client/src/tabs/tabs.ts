/**
 * The tabs of one origin have the same databases: one of them, the leader, registers and syncs. Where there are no locks,
 * everyone leads; and in Node, which has locks, but of one process: its databases are not those of an origin.
 */
import type { Syncs } from '../engine.ts'
import type { Events } from '../status.ts'

export type Message =
  /** The `_local` document was written. */
  | { readonly kind: 'kept' }
  /** Somebody uses this channel. */
  | { readonly kind: 'touched'; readonly id: string }
  /** From the leader. */
  | { readonly kind: 'syncs'; readonly syncs: Syncs }
  | { readonly kind: 'refused'; readonly refused: Events['refused'] }
  /** To the leader: a tab was opened. */
  | { readonly kind: 'hello' }

export interface Tabs {
  tell(message: Message): void
  /** Runs `work` when this tab is the leader; at once, or when the one before it closes. Until the signal aborts. */
  lead(work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void>
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
      close: () => undefined,
    }
  const channel = new BroadcastChannel(name)
  channel.onmessage = ({ data }) => hear(data as Message)

  return {
    tell: (message) => channel.postMessage(message),
    async lead(work, signal) {
      try {
        await locks.request(name, { signal }, () => work(signal))
      } catch (thrown) {
        if (!signal.aborted) throw thrown
      }
    },
    close: () => channel.close(),
  }
}
