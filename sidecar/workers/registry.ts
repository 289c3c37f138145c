import { isoTime } from '../core/clock.ts'
import { CouchError } from '../couch/errors.ts'
import { timeoutFrom, type WorkerOptions } from './documents.ts'
import { Role, type Membership, type RoleOptions } from './role.ts'

/** What a worker tells of itself, as JSON, and how long it may be silent (default 15,000 ms, at least 500). */
export type RegisterOptions = WorkerOptions & { readonly timeoutMs?: number }

/** A registration, or a subscription, of this process. */
export interface Ref {
  readonly role: string
  /** Of the worker, or of the subscription. */
  readonly id: string
}

export type Subscriber = (membership: Membership & { readonly ref: Ref }) => void

/** The members of roles: who is there to do something. Kept in the database, for everybody to see. */
export interface Registry {
  /**
   * Registers a worker until `unregister`, the signal, or the end of the process. The same id again answers the same
   * ref, and changes its options. Needs no database now: it is registered as soon as that can be.
   */
  register(role: string, id: string, options?: RegisterOptions, signal?: AbortSignal): Ref
  /** Takes a worker out, so that its share moves at once. Throws `CouchError`; then it is found dead later. */
  unregister(ref: Ref): Promise<void>
  /** As last read; undefined where nobody here is a member or subscribes, or nothing could be read yet. */
  members(role: string): Membership | undefined
  /** Called once for each version: at once if one is known. Answers how to end it; so does the signal. */
  subscribe(role: string, subscriber: Subscriber, signal?: AbortSignal): () => void
  /** Takes out all workers of this process, as far as that can be within a moment. */
  close(): Promise<void>
}

interface Kept {
  readonly role: Role
  readonly refs: Map<string, Ref>
  readonly subscribers: Map<Ref, Subscriber>
  readonly stop: AbortController
  readonly done: Promise<void>
}

const LAST_WORDS_MS = 2000
/** Rounds that fail before somebody is told: the database may be about to be made. */
const PATIENCE = 4

export function createRegistry(options: RoleOptions): Registry {
  const { clock, log } = options
  const roles = new Map<string, Kept>()
  /** Those on their way out, so that `close` waits for them too. */
  const leaving = new Set<Promise<void>>()
  let count = 0

  function keep(name: string): Kept {
    const known = roles.get(name)
    if (known) return known
    const stop = new AbortController()
    const role = new Role(name, options)
    const kept: Kept = { role, refs: new Map(), subscribers: new Map(), stop, done: run(() => kept) }
    roles.set(name, kept)
    return kept
  }

  async function run(self: () => Kept): Promise<void> {
    await Promise.resolve() // whoever asked for the role is on it first
    const { role, subscribers, stop } = self()
    let troubles = 0
    while (!stop.signal.aborted) {
      try {
        const changed = await role.round(stop.signal)
        troubles = 0
        if (changed) for (const [ref, subscriber] of subscribers) tell(subscriber, role.membership!, ref)
      } catch (thrown) {
        if (stop.signal.aborted) break
        if (!(thrown instanceof CouchError)) throw thrown
        troubles += 1
        const level = troubles === PATIENCE ? 'warn' : 'debug'
        log[level]({ role: role.name, code: thrown.code, reason: thrown.message }, 'cannot see the other workers')
      }
      await clock.sleep(role.pauseMs(), stop.signal).catch(() => undefined)
    }
  }

  function tell(subscriber: Subscriber, membership: Membership, ref: Ref): void {
    try {
      subscriber({ ...membership, ref })
    } catch (err) {
      log.error({ role: membership.role, err }, 'a subscriber to the membership failed')
    }
  }

  function endIfUnused(kept: Kept): void {
    if (kept.refs.size > 0 || kept.subscribers.size > 0) return
    roles.delete(kept.role.name)
    kept.stop.abort(new Error('nobody needs it any more'))
  }

  async function unregister(ref: Ref): Promise<void> {
    const kept = roles.get(ref.role)
    if (kept?.refs.get(ref.id) !== ref) return
    kept.refs.delete(ref.id)
    const lastWords = AbortSignal.timeout(LAST_WORDS_MS)
    lastWords.addEventListener('abort', () => endIfUnused(kept), { once: true })
    const left = kept.role.leave(ref.id, lastWords).finally(() => endIfUnused(kept))
    leaving.add(left)
    await left.finally(() => leaving.delete(left))
  }

  return {
    register(role, id, { timeoutMs, ...given } = {}, signal) {
      const kept = keep(role)
      const told = JSON.parse(JSON.stringify(given)) as WorkerOptions // as it will be read again
      kept.role.join({ id, options: told, timeoutMs: timeoutFrom(timeoutMs), registeredAt: isoTime(clock.now()) })
      const known = kept.refs.get(id)
      const ref = known ?? { role, id }
      kept.refs.set(id, ref)
      signal?.addEventListener('abort', () => void unregister(ref).catch(() => undefined), { once: true })
      return ref
    },
    unregister,
    members: (role) => roles.get(role)?.role.membership,
    subscribe(role, subscriber, signal) {
      const kept = keep(role)
      const ref: Ref = { role, id: `subscription-${++count}` }
      kept.subscribers.set(ref, subscriber)
      if (kept.role.membership) tell(subscriber, kept.role.membership, ref)
      const end = () => {
        kept.subscribers.delete(ref)
        endIfUnused(kept)
      }
      signal?.addEventListener('abort', end, { once: true })
      return end
    },
    async close() {
      const all = [...roles.values()]
      for (const { subscribers } of all) subscribers.clear()
      const refs = all.flatMap(({ refs }) => [...refs.values()])
      await Promise.allSettled([...leaving, ...refs.map(unregister)])
      for (const kept of all) endIfUnused(kept)
      await Promise.all(all.map(({ done }) => done))
    },
  }
}
