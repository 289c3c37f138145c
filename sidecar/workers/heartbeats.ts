import { isoTime } from '../core/clock.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import { createLocalDoc, type LocalDoc } from '../couch/local.ts'
import { beatId, memberDoc, memberFrom, memberId, sameOptions, type Member } from './worker-documents.ts'
import { removeMember } from './remove.ts'
import type { RoleOptions } from './role.ts'
import type { Liveness } from './liveness.ts'

/**
 * Members of this process in one role: writes their heartbeats and their documents.
 *
 * By mistake, another process may run as the same worker. The document then belongs to the process that it names, while
 * that process writes heartbeats. The other process writes neither document nor heartbeat, and takes over if the first
 * one is silent. Until a process knows whether the other one is alive, it writes heartbeats only. So a restarted worker
 * does not count as dead.
 */
export class Heartbeats {
  readonly #role: string
  readonly #process: string
  readonly #options: RoleOptions
  readonly #members = new Map<string, Member>()
  readonly #locals = new Map<string, LocalDoc>()
  /** Ids of members for which a second process of the same name was logged. */
  readonly #warned = new Set<string>()
  #beats = 0

  constructor(role: string, process: string, options: RoleOptions) {
    this.#role = role
    this.#process = process
    this.#options = options
  }

  get members(): Iterable<Member> {
    return this.#members.values()
  }

  /** Whether the document of this id belongs to a member of this process. */
  has(docId: string): boolean {
    return this.#members.has(docId)
  }

  add(member: Member): void {
    this.#members.set(memberId(this.#role, member.id), member)
  }

  drop(id: string): void {
    this.#members.delete(memberId(this.#role, id))
  }

  /** Writes each member's heartbeat, and its document if outdated; updates `found`. Throws `CouchError`. */
  async keepUp(found: Map<string, StoredDoc>, signs: Liveness, signal: AbortSignal): Promise<void> {
    for (const [docId, member] of this.#members) {
      const doc = found.get(docId)
      const isOurs = doc === undefined || doc.process === this.#process
      if (signs.isAlive(docId)) {
        const isNews = this.#warnOnce(docId, member)
        if (!isOurs && !isNews) continue // one more heartbeat, so that the other process detects this one
      }
      await this.#beat(docId, signal)
      if (isOurs || signs.isSilent(docId)) await this.#write(member, found, signal)
    }
  }

  /** Removes a dropped member, unless it was added again or another process has its id. Throws `CouchError`. */
  async leave(id: string, signs: Liveness, signal: AbortSignal): Promise<void> {
    const docId = memberId(this.#role, id)
    if (this.#members.has(docId)) return
    this.#locals.delete(docId)
    this.#warned.delete(docId)
    const { database } = this.#options
    const doc = await database.find(docId, {}, { signal })
    if (!doc || (doc.process !== this.#process && signs.isAlive(docId))) return
    await removeMember(database, doc, signal)
  }

  async #beat(docId: string, signal: AbortSignal): Promise<void> {
    const { database, clock, payload } = this.#options
    const local = this.#locals.get(docId) ?? createLocalDoc(database, beatId(docId))
    this.#locals.set(docId, local)
    const fields = payload?.fieldsToSend()
    await local.write({ ...fields, process: this.#process, beat: ++this.#beats, at: isoTime(clock.now()) }, signal)
  }

  async #write(member: Member, found: Map<string, StoredDoc>, signal: AbortSignal): Promise<void> {
    const doc = memberDoc(this.#role, member, this.#process)
    const current = found.get(doc._id)
    if (current && sameOptions(memberFrom(current), member)) return
    try {
      const _rev = await this.#options.database.put({ ...doc, ...(current && { _rev: current._rev }) }, { signal })
      found.set(doc._id, { ...doc, _rev })
    } catch (thrown) {
      if (!isCouchError(thrown, 'conflict')) throw thrown // removed or written meanwhile: the next round reads it
    }
  }

  /** True if the warning was logged now. */
  #warnOnce(docId: string, { id }: Member): boolean {
    if (this.#warned.has(docId)) return false
    this.#warned.add(docId)
    this.#options.log.warn(
      { role: this.#role, worker: id },
      'another process has the name of this worker; give each its own SIDECAR_NAME',
    )
    return true
  }
}
