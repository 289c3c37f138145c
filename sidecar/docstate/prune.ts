import type { Logger } from 'pino'
import type { Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import type { Database } from '../couch/database.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { CouchError } from '../couch/errors.ts'
import { DueQueue } from './due.ts'
import { takingOut, voidClaims } from './rivals.ts'

export interface PruneOptions {
  readonly database: Database
  readonly leaseMs: number
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** So many documents with conflicts are remembered at a time. */
const MAX_SUSPECTS = 10_000

/**
 * Takes out claims that stand beside the history that CouchDB shows, and that nobody takes back: their worker died
 * before it could, or was told "conflict" by a cluster of which one node died with the claim. The feed tells of
 * conflicts, so that nothing has to be searched for them; whatever is no claim of a sidecar stays as it is.
 */
export class Prune {
  readonly #options: PruneOptions
  readonly #due: DueQueue
  readonly #suspects = new Map<string, { readonly revs: readonly string[]; readonly since: number }>()

  constructor(options: PruneOptions) {
    this.#options = options
    this.#due = new DueQueue(options.clock, Infinity)
  }

  /** A document as the feed gave it. */
  see({ _id, _conflicts }: StoredDoc): void {
    if (!_conflicts?.length) this.#suspects.delete(_id)
    else if (!this.#suspects.has(_id) && this.#suspects.size < MAX_SUSPECTS) this.#suspect(_id, _conflicts)
  }

  /** Until the signal aborts; throws its reason. */
  async run(signal: AbortSignal): Promise<void> {
    for (;;) {
      for (const id of await this.#due.next(signal)) {
        const suspect = this.#suspects.get(id)
        this.#suspects.delete(id)
        if (!suspect) continue
        const age = this.#options.clock.ticks() - suspect.since // the time that `due` goes by may jump
        const left = age < this.#options.leaseMs ? suspect.revs : await this.#prune(id, suspect.revs, signal)
        if (left.length > 0) this.#suspect(id, left)
      }
    }
  }

  /** Whose claim it is has a lease to take it back. */
  #suspect(id: string, revs: readonly string[]): void {
    const { clock, random, leaseMs } = this.#options
    this.#suspects.set(id, { revs, since: clock.ticks() })
    this.#due.add(id, clock.now() + leaseMs * (1 + random() / 4))
  }

  /** Answers what is to be looked at again. */
  async #prune(id: string, seen: readonly string[], signal: AbortSignal): Promise<readonly string[]> {
    const { database, log } = this.#options
    try {
      const leaves = await database.leaves(id, { signal })
      const out = voidClaims(leaves, seen)
      const kept = leaves.filter((leaf) => !leaf._deleted && !out.includes(leaf))
      if (out.length > 0) await database.merge(takingOut(out, kept), { signal })
      for (const { _rev } of out) log.debug({ doc: id, rev: _rev }, 'a claim beside the document was taken out')
      return voidClaims(leaves).flatMap(({ _rev }) => (seen.includes(_rev) ? [] : [_rev]))
    } catch (thrown) {
      if (!(thrown instanceof CouchError)) throw thrown
      log.debug({ doc: id, err: thrown }, 'claims beside the document could not be taken out; later again')
      return seen
    }
  }
}
