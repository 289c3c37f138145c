import { createHash, randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import { createMutex } from '../core/mutex.ts'
import type { Database } from '../couch/database.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { readLocalDocs } from '../couch/local.ts'
import { beatId, isMember, memberFrom, rolePrefix, type Member } from './worker-documents.ts'
import type { HeartbeatPayload } from './heartbeat-payload.ts'
import { Heartbeats } from './heartbeats.ts'
import { removeMember } from './remove.ts'
import { Liveness } from './liveness.ts'

export interface RoleOptions {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly payload?: HeartbeatPayload
}

/** Members of a role, as one read of the database found them. */
export interface Membership {
  readonly role: string
  /** Changes exactly when the membership does; the same on every worker that reads the same members. */
  readonly version: string
  /** Ordered by id. */
  readonly members: readonly Member[]
}

/** Longest pause between rounds, also in a process without members. */
const WATCH_MS = 5000
/** First pause, also after a change: workers start together. Each further pause is twice as long. */
const FIRST_MS = 250
/** Shortest pause, for any timeouts of the members. */
const LEAST_MS = 100

/**
 * Work of this process for one role: renews its own members, reads the membership, removes dead workers. It works in
 * rounds, and each round decides from the documents that it reads.
 */
export class Role {
  readonly name: string
  membership: Membership | undefined
  readonly #options: RoleOptions
  readonly #own: Heartbeats
  readonly #signs: Liveness
  /** A running round could register a leaving member again. */
  readonly #mutex = createMutex()
  /** Rounds since the last change of the membership. */
  #calm = 0

  constructor(name: string, options: RoleOptions) {
    const process = randomUUID() // unique, unlike a worker's id, which another process may have by mistake
    this.name = name
    this.#options = options
    this.#own = new Heartbeats(name, process, options)
    this.#signs = new Liveness(() => options.clock.ticks(), process)
  }

  /** Pause until the next round, milliseconds: at most a third of the shortest timeout, at least `LEAST_MS`. */
  pauseMs(): number {
    const all = [...this.#own.members, ...(this.membership?.members ?? [])]
    const settledMs = Math.min(...all.map(({ timeoutMs }) => timeoutMs / 3), WATCH_MS)
    const pauseMs = Math.min(settledMs, FIRST_MS * 2 ** this.#calm) * (0.8 + 0.2 * this.#options.random())
    return Math.max(LEAST_MS, pauseMs)
  }

  /** Registers a member with the next round, or changes its options. */
  join(member: Member): void {
    this.#own.add(member)
  }

  /** Removes a member of this process, unless it joins again during the running round. Throws `CouchError`. */
  leave(id: string, signal: AbortSignal): Promise<void> {
    this.#own.drop(id)
    return this.#mutex(() => this.#own.leave(id, this.#signs, signal))
  }

  /** Runs one round. True if the membership has changed. Throws `CouchError`. */
  async round(signal: AbortSignal): Promise<boolean> {
    this.#calm += 1
    try {
      const changed = await this.#mutex(() => this.#round(signal))
      if (changed) this.#calm = 0
      return changed
    } catch (thrown) {
      this.#signs.forget()
      throw thrown
    }
  }

  async #round(signal: AbortSignal): Promise<boolean> {
    const found = await this.#look(signal)
    await this.#own.keepUp(found, this.#signs, signal)
    await this.#removeTheDead(found, signal)
    const membership = membershipOf(this.name, [...found.values()])
    const changed = membership.version !== this.membership?.version
    if (changed) this.membership = membership
    return changed
  }

  /** Reads the documents of all members, by id, and records their heartbeats. */
  async #look(signal: AbortSignal): Promise<Map<string, StoredDoc>> {
    const { database, payload } = this.#options
    const docs = (await database.withPrefix(rolePrefix(this.name), { signal })).filter(isMember)
    const beatIds = docs.map(({ _id }) => beatId(_id))
    const beats = await readLocalDocs(database, beatIds, signal)
    this.#signs.look(docs, beats)
    const received = docs.flatMap((doc) => {
      const beat = beats.get(beatId(doc._id))
      return beat ? [[memberFrom(doc).id, beat] as const] : []
    })
    payload?.receive(new Map(received))
    return new Map(docs.map((doc) => [doc._id, doc]))
  }

  async #removeTheDead(found: Map<string, StoredDoc>, signal: AbortSignal): Promise<void> {
    const { database, log } = this.#options
    const dead = [...found.values()].filter(({ _id }) => this.#signs.isSilent(_id) && !this.#own.has(_id))
    for (const doc of dead) {
      const worker = memberFrom(doc).id
      if (await removeMember(database, doc, signal)) log.warn({ role: this.name, worker }, 'removed a dead worker')
      found.delete(doc._id)
    }
  }
}

function membershipOf(role: string, docs: readonly StoredDoc[]): Membership {
  const sorted = [...docs].sort((a, b) => (a._id < b._id ? -1 : 1))
  const hash = createHash('sha256').update(sorted.map(({ _id, _rev }) => `${_id} ${_rev}\n`).join(''))
  return { role, version: hash.digest('base64url').slice(0, 16), members: sorted.map(memberFrom) }
}
