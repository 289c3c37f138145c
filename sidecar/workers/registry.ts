import { onAbort } from '../core/on-abort.ts'
import { isoTime } from '../core/clock.ts'
import { CouchError } from '../couch/couch-errors.ts'
import type { Events } from '../events/channels.ts'
import { timeoutFrom, type Member, type WorkerOptions } from './worker-documents.ts'
import { Role, type Membership, type RoleOptions } from './role.ts'
import { Subscriptions, type Ref, type Subscriber } from './subscriptions.ts'

/** What a worker tells of itself, as JSON, and how long it may be silent (default 15,000 ms, at least 500). */
export type RegisterOptions = WorkerOptions & { readonly timeoutMs?: number }

export type { Ref, Subscriber } from './subscriptions.ts'

/** The members of roles: the workers that do something. Kept in the database, so that all workers see them. */
export interface Registry {
  /**
   * Registers a worker until `unregister`, the signal, or the end of the process. The same id again answers the same
   * ref, and changes its options, and its signal if there is one. Needs no database now: it is registered as soon as
   * that can be. After the signal, or after `close`, no worker is registered.
   */
  register(role: string, id: string, options?: RegisterOptions, signal?: AbortSignal): Ref
  /** Takes a worker out, so that its share moves at once. Throws `CouchError`; then it is found dead later. */
  unregister(ref: Ref): Promise<void>
  /** As last read; undefined where this process has no member and no subscriber, or nothing could be read yet. */
  members(role: string): Membership | undefined
  /** Called once for each version: at once if one is known. Answers how to end it; so does the signal. */
  subscribe(role: string, subscriber: Subscriber, signal?: AbortSignal): () => void
  /** Takes out all workers of this process, as far as that can be within a moment. What is asked for later has ended. */
  close(): Promise<void>
}

interface Registered {
  readonly ref: Ref
  /** Takes back what waits for its signal. */
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
/** Failed rounds before a warning is logged: the database may be about to be made. */
const WARN_AFTER = 4

export interface RegistryOptions extends RoleOptions {
  /** Where it is told who comes and goes. */
  readonly events: Events
}

export function createRegistry(options: RegistryOptions): Registry {
  const { clock, log, events } = options
  const roles = new Map<string, Kept>()
  /** Those on their way out, so that `close` waits for them too. */
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
      done: Promise.resolve().then(() => run(kept)), // the caller that asked for the role is on it first
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
          subscriptions.tellAll(role.membership!)
          tellChange(before?.members ?? [], role.membership!)
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

  function tellChange(before: readonly Member[], { role, members }: Membership): void {
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
    if (roles.get(kept.role.name) === kept) roles.delete(kept.role.name) // by now it may be another one
    kept.stop.abort(new Error('it is not needed any more'))
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
      const told = JSON.parse(JSON.stringify(given)) as WorkerOptions // as it will be read again
      kept.role.join({ id, options: told, timeoutMs: timeoutFrom(timeoutMs), registeredAt: isoTime(clock.now()) })
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
