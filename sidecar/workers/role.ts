import { createHash, randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { Random } from '../core/backoff.ts'
import { isoTime, type Clock } from '../core/clock.ts'
import { createExclusive } from '../core/exclusive.ts'
import { Stillness } from '../core/stillness.ts'
import type { Database } from '../couch/database.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import { CouchError, isCouchError } from '../couch/errors.ts'
import { createLocalDoc, readLocalDocs, type LocalDoc } from '../couch/local.ts'
import { beatId, memberDoc, memberFrom, memberId, rolePrefix, sameOptions, type Member } from './documents.ts'

export interface RoleOptions {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** Who does something, as one reading of the database found it. */
export interface Membership {
  readonly role: string
  /** Changes exactly when the membership does; the same for everybody who sees the same. */
  readonly version: string
  /** By their ids, in order. */
  readonly members: readonly Member[]
}

/** Between two looks of somebody who only watches. */
const WATCH_MS = 5000
/** Between the first two looks, and after a change: workers start together. Each pause is twice the one before. */
const FIRST_MS = 250

/**
 * What this process has to do with one role: gives the signs of life of its own members, looks at who is there, removes
 * who is dead. All of it in rounds, each of which finds out what is to be done from what it reads.
 */
export class Role {
  readonly name: string
  readonly own = new Map<string, Member>()
  membership: Membership | undefined
  readonly #options: RoleOptions
  readonly #stillness: Stillness
  readonly #locals = new Map<string, LocalDoc>()
  /** Nobody else has the same, as the worker's id should be. */
  readonly #process = randomUUID()
  /** A round under way would write down again who leaves. */
  readonly #exclusive = createExclusive()
  #beats = 0
  readonly #namesakes = new Set<string>()
  /** Rounds since something changed. */
  #calm = 0
  /** When all could be read; long ago if it could not be the last time. */
  #lookedAt = -Infinity

  constructor(name: string, options: RoleOptions) {
    this.name = name
    this.#options = options
    this.#stillness = new Stillness(() => options.clock.ticks())
  }

  /** How long until the next round: at most a third of the shortest timeout that there is. Milliseconds. */
  pauseMs(): number {
    const all = [...this.own.values(), ...(this.membership?.members ?? [])]
    const settledMs = Math.min(...all.map(({ timeoutMs }) => timeoutMs / 3), WATCH_MS)
    return Math.min(settledMs, FIRST_MS * 2 ** this.#calm) * (0.8 + 0.2 * this.#options.random())
  }

  /** Looks and does what is needed. True if the membership has changed. Throws `CouchError`. */
  async round(signal: AbortSignal): Promise<boolean> {
    this.#calm += 1
    try {
      const changed = await this.#exclusive(() => this.#round(signal))
      if (changed) this.#calm = 0
      return changed
    } catch (thrown) {
      this.#lookedAt = -Infinity
      throw thrown
    }
  }

  async #round(signal: AbortSignal): Promise<boolean> {
    for (const id of this.own.keys()) await this.#beat(id, signal)
    const found = new Map((await this.#read(signal)).map((doc) => [doc._id, doc]))
    for (const member of this.own.values()) await this.#ensure(member, found, signal)
    await this.#removeTheDead(found, signal)
    const membership = membershipOf(this.name, [...found.values()])
    const changed = membership.version !== this.membership?.version
    if (changed) this.membership = membership
    return changed
  }

  /** Takes a member of ours out, unless it is back by the end of the round under way. Throws `CouchError`. */
  leave(id: string, signal: AbortSignal): Promise<void> {
    return this.#exclusive(async () => {
      if (this.own.has(id)) return
      const doc = await this.#options.database.find(memberId(this.name, id), {}, { signal })
      if (doc) await this.#remove(doc, signal)
    })
  }

  async #beat(id: string, signal: AbortSignal): Promise<void> {
    const { database, clock } = this.#options
    const known = this.#locals.get(id)
    const local = known ?? createLocalDoc(database, beatId(memberId(this.name, id)))
    this.#locals.set(id, local)
    await local.write({ process: this.#process, beat: ++this.#beats, at: isoTime(clock.now()) }, signal)
  }

  #read(signal: AbortSignal): Promise<StoredDoc[]> {
    return this.#options.database.withPrefix(rolePrefix(this.name), { signal })
  }

  async #ensure(member: Member, found: Map<string, StoredDoc>, signal: AbortSignal): Promise<void> {
    const doc = memberDoc(this.name, member)
    const there = found.get(doc._id)
    if (there && sameOptions(memberFrom(there), member)) return
    try {
      const _rev = await this.#options.database.put({ ...doc, ...(there && { _rev: there._rev }) }, { signal })
      found.set(doc._id, { ...doc, _rev })
    } catch (thrown) {
      if (!isCouchError(thrown, 'conflict')) throw thrown // removed or written in this moment: the next round sees it
    }
  }

  async #removeTheDead(found: Map<string, StoredDoc>, signal: AbortSignal): Promise<void> {
    const { database, clock, log } = this.#options
    const ids = [...found.keys()].map(beatId)
    const beats = await readLocalDocs(database, ids, signal)
    const others = [...found.values()].filter((doc) => !this.own.has(memberFrom(doc).id))
    this.#warnOfNamesakes(beats)
    const unseenMs = clock.ticks() - this.#lookedAt
    this.#lookedAt = clock.ticks()
    for (const doc of others) {
      const member = memberFrom(doc)
      const mark = `${doc._rev} ${JSON.stringify(beats.get(beatId(doc._id)))}`
      if (unseenMs > member.timeoutMs / 2) this.#stillness.forget(doc._id) // CouchDB was away, and for the others too
      if (this.#stillness.remaining(doc._id, mark, member.timeoutMs) > 0) continue
      if (await this.#remove(doc, signal)) log.warn({ role: this.name, worker: member.id }, 'a worker is dead; removed')
      this.#stillness.forget(doc._id)
      found.delete(doc._id)
    }
  }

  #warnOfNamesakes(beats: ReadonlyMap<string, Doc>): void {
    for (const id of this.own.keys()) {
      const process = beats.get(beatId(memberId(this.name, id)))?.process
      if (process === undefined || process === this.#process || this.#namesakes.has(id)) continue
      this.#namesakes.add(id)
      this.#options.log.warn(
        { role: this.name, worker: id },
        'another process is this worker too; give each its own name',
      )
    }
  }

  /** False if it has changed since: it lives, or somebody else has removed it. */
  async #remove(doc: StoredDoc, signal: AbortSignal): Promise<boolean> {
    const { database } = this.#options
    try {
      await database.remove(doc._id, doc._rev, { signal })
    } catch (thrown) {
      if (isCouchError(thrown, 'conflict') || isCouchError(thrown, 'not_found')) return false
      throw thrown
    }
    await database.remove(beatId(doc._id), '0-1', { signal }).catch((thrown: unknown) => {
      if (!(thrown instanceof CouchError)) throw thrown // a sign of life without a member says nothing
    })
    return true
  }
}

function membershipOf(role: string, docs: readonly StoredDoc[]): Membership {
  const sorted = [...docs].sort((a, b) => (a._id < b._id ? -1 : 1))
  const hash = createHash('sha256').update(sorted.map(({ _id, _rev }) => `${_id} ${_rev}\n`).join(''))
  return { role, version: hash.digest('base64url').slice(0, 16), members: sorted.map(memberFrom) }
}
