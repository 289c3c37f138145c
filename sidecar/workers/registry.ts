import type { Logger } from 'pino'
import { onAbort } from '../core/on-abort.ts'
import { isoTime } from '../core/clock.ts'
import { CouchError } from '../couch/couch-errors.ts'
import type { Events } from '../events/channels.ts'
import { timeoutFrom, type Member, type WorkerOptions } from './worker-documents.ts'
import { Role, type Membership, type RoleOptions } from './role.ts'

/** Options that a worker publishes, as JSON, and its heartbeat timeout (default 15,000 ms, at least 500). */
export type RegisterOptions = WorkerOptions & { readonly timeoutMs?: number }

/** Identifies a registration or a subscription of this process. */
export interface Ref {
  readonly role: string
  /** Id of the worker, or of the subscription. */
  readonly id: string
}

export type Subscriber = (membership: Membership & { readonly ref: Ref }) => void

/** Registered workers by role. They are stored in the database, so that all workers can read them. */
export interface Registry {
  /**
   * Registers a worker until `unregister`, the signal, or the end of the process. A second call with the same id
   * returns the same ref, and changes the options, and the signal if given. The call does not wait for the database:
   * the worker is registered as soon as possible. After the signal, or after `close`, no worker is registered.
   */
  register(role: string, id: string, options?: RegisterOptions, signal?: AbortSignal): Ref
  /** Removes a worker, so that its partition moves at once. Throws `CouchError`; then the timeout removes it. */
  unregister(ref: Ref): Promise<void>
  /** Membership as last read; undefined before the first read, and without a member or subscriber in this process. */
  members(role: string): Membership | undefined
  /** Calls the subscriber once per version, at once if one is known. The signal or the returned function ends this. */
  subscribe(role: string, subscriber: Subscriber, signal?: AbortSignal): () => void
  /** Removes all workers of this process, within two seconds if possible. Later calls have no effect. */
  close(): Promise<void>
}

interface Registered {
  readonly ref: Ref
  /** Removes the listener of its signal. */
  readonly deafen: () => void
}

interface Kept {
  readonly role: Role
  readonly registered: Map<string, Registered>
  readonly subscriptions: Subscriptions
  readonly stop: AbortController
  readonly done: Promise<void>
}

const LAST_WORDS_MS = 2000
/** Failed rounds before a warning is logged: the database may not be created yet. */
const WARN_AFTER = 4

export interface RegistryOptions extends RoleOptions {
  /** Receives `worker:joined` and `worker:left`. */
  readonly events: Events
}

export function createRegistry(options: RegistryOptions): Registry {
  const { clock, log, events } = options
  const roles = new Map<string, Kept>()
  /** Running removals, so that `close` waits for them, too. */
  const leaving = new Set<Promise<void>>()
  let count = 0
  let closed = false

  function keep(name: string): Kept {
    const known = roles.get(name)
    if (known) return known
    const kept: Kept = {
      role: new Role(name, options),
      registered: new Map(),
      subscriptions: new Subscriptions(log),
      stop: new AbortController(),
      done: Promise.resolve().then(() => run(kept)), // starts after the caller has added its member or subscriber
    }
    roles.set(name, kept)
    return kept
  }

  async function run({ role, subscriptions, stop }: Kept): Promise<void> {
    let troubles = 0
    while (!stop.signal.aborted) {
      try {
        const before = role.membership
        const changed = await role.round(stop.signal)
        troubles = 0
        if (changed) {
          subscriptions.notifyAll(role.membership!)
          publishChange(before?.members ?? [], role.membership!)
        }
      } catch (thrown) {
        if (stop.signal.aborted) break
        if (!(thrown instanceof CouchError)) throw thrown
        troubles += 1
        const level = troubles === WARN_AFTER ? 'warn' : 'debug'
        log[level]({ role: role.name, code: thrown.code, reason: thrown.message }, 'cannot read the list of workers')
      }
      await clock.sleep(role.pauseMs(), stop.signal).catch(() => undefined)
    }
  }

  function publishChange(before: readonly Member[], { role, members }: Membership): void {
    const isIn = (all: readonly Member[]) => (member: Member) => all.some(({ id }) => id === member.id)
    for (const { id } of members.filter((member) => !isIn(before)(member))) {
      events.channel('worker:joined')?.publish({ role, worker: id })
    }
    for (const { id } of before.filter((member) => !isIn(members)(member))) {
      events.channel('worker:left')?.publish({ role, worker: id })
    }
  }

  function endIfUnused(kept: Kept): void {
    if (kept.registered.size > 0 || kept.subscriptions.size > 0) return
    if (roles.get(kept.role.name) === kept) roles.delete(kept.role.name) // the name may have a new role by now
    kept.stop.abort(new Error('it is no longer needed'))
  }

  async function unregister(ref: Ref): Promise<void> {
    const kept = roles.get(ref.role)
    const known = kept?.registered.get(ref.id)
    if (!kept || known?.ref !== ref) return
    known.deafen()
    kept.registered.delete(ref.id)
    const lastWords = AbortSignal.timeout(LAST_WORDS_MS)
    onAbort(lastWords, () => endIfUnused(kept))
    const left = kept.role.leave(ref.id, lastWords).finally(() => endIfUnused(kept))
    leaving.add(left)
    await left.finally(() => leaving.delete(left))
  }

  return {
    register(role, id, { timeoutMs, ...given } = {}, signal) {
      const known = roles.get(role)?.registered.get(id)
      const ref = known?.ref ?? { role, id }
      const end = () => void unregister(ref).catch(() => undefined)
      if (closed || signal?.aborted) {
        end()
        return ref
      }
      const kept = keep(role)
      const options = JSON.parse(JSON.stringify(given)) as WorkerOptions // as a read will return it
      kept.role.join({ id, options, timeoutMs: timeoutFrom(timeoutMs), registeredAt: isoTime(clock.now()) })
      if (signal) known?.deafen()
      kept.registered.set(id, { ref, deafen: signal || !known ? onAbort(signal, end) : known.deafen })
      return ref
    },
    unregister,
    members: (role) => roles.get(role)?.role.membership,
    subscribe(role, subscriber, signal) {
      if (closed || signal?.aborted) return () => undefined
      const kept = keep(role)
      const ref: Ref = { role, id: `subscription-${++count}` }
      const remove = kept.subscriptions.add(ref, subscriber, kept.role.membership)
      const end = () => {
        deafen()
        remove()
        endIfUnused(kept)
      }
      const deafen = onAbort(signal, end)
      return end
    },
    async close() {
      closed = true
      const all = [...roles.values()]
      for (const { subscriptions } of all) subscriptions.clear()
      const refs = all.flatMap(({ registered }) => [...registered.values()].map(({ ref }) => ref))
      await Promise.allSettled([...leaving, ...refs.map(unregister)])
      for (const kept of all) endIfUnused(kept)
      await Promise.all(all.map(({ done }) => done))
    },
  }
}

interface Subscription {
  readonly ref: Ref
  readonly subscriber: Subscriber
  /** Version of the last notification. */
  notified: string | undefined
}

/** Subscribers to one role. Each receives a version once, and nothing after its subscription ends. */
class Subscriptions {
  readonly #all = new Set<Subscription>()
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  get size(): number {
    return this.#all.size
  }

  /** Returns a function that ends the subscription. */
  add(ref: Ref, subscriber: Subscriber, known: Membership | undefined): () => void {
    const subscription: Subscription = { ref, subscriber, notified: undefined }
    this.#all.add(subscription)
    if (known) this.#notify(subscription, known)
    return () => void this.#all.delete(subscription)
  }

  /** Notifies the current subscribers. A subscriber may add and end subscriptions meanwhile. */
  notifyAll(membership: Membership): void {
    for (const subscription of [...this.#all]) this.#notify(subscription, membership)
  }

  clear(): void {
    this.#all.clear()
  }

  #notify(subscription: Subscription, membership: Membership): void {
    const { ref, subscriber, notified } = subscription
    if (notified === membership.version || !this.#all.has(subscription)) return
    subscription.notified = membership.version
    try {
      subscriber({ ...membership, ref })
    } catch (err) {
      this.#log.error({ role: membership.role, err }, 'a subscriber to the membership failed')
    }
  }
}
