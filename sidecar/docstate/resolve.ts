import type { Logger } from 'pino'
import type { Clock } from '../core/clock.ts'
import type { Database } from '../couch/database.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import { CouchError } from '../couch/errors.ts'
import type { Writer } from '../couch/writer.ts'
import { docstateOf, type DispatchTable } from './assess.ts'
import { readBranches, type Branches } from './branches.ts'
import type { DueQueue } from './due.ts'
import type { Fly } from './fly.ts'
import { LeaseWatch } from './lease-watch.ts'
import { takingOut } from './rivals.ts'
import { compareTransitions, mergeFields, type Conflict } from './merge.ts'

export interface ResolveOptions {
  readonly database: Database
  readonly writer: Writer
  readonly table: DispatchTable
  readonly due: DueQueue
  readonly clock: Clock
  readonly log: Logger
  /** The end of all patience. */
  readonly signal: AbortSignal
  readonly onResolved: () => void
}

/**
 * Makes one document of the branches that replication has brought: first the merged document upon the branch that
 * CouchDB shows, then the others go. Whoever finds only the first done comes to the same end.
 */
export function createResolve(options: ResolveOptions): Fly {
  const { database, writer, table, due, clock, log, signal, onResolved } = options
  const leases = new LeaseWatch(() => clock.ticks())

  /** Milliseconds until the last claim on any branch is over or may be taken over; 0 if there is none. */
  function claimedFor(leaves: readonly StoredDoc[]): number {
    const waits = leaves.map((leaf) => {
      const claim = docstateOf(leaf)?.claim
      return claim ? leases.remaining({ ...leaf, _id: `${leaf._id} ${leaf._rev}` }, claim) : 0
    })
    return Math.max(0, ...waits)
  }

  function resolved(conflict: Conflict): Doc {
    const resolver = table.resolvers?.get(String(conflict.ours.type)) ?? mergeFields
    try {
      return resolver(conflict)
    } catch (err) {
      log.error({ doc: conflict.ours._id, err }, 'the resolver failed; its document is merged as those without one')
      return mergeFields(conflict)
    }
  }

  async function merge(branches: Branches): Promise<Doc> {
    const [first, ...rest] = branches.leaves
    let merged: StoredDoc = first!
    for (const leaf of rest) {
      const base = await branches.base(first!, leaf)
      const machine = table.machines[String(merged.type)]
      const [ours, theirs] = compareTransitions(merged, leaf, base, machine) <= 0 ? [merged, leaf] : [leaf, merged]
      merged = { ...resolved({ ours, theirs, base }), _id: first!._id, _rev: first!._rev }
    }
    return merged
  }

  return async (flight) => {
    const { id } = flight
    try {
      const branches = await readBranches(database, id, signal)
      const [shown, ...others] = branches.leaves
      if (!shown || others.length === 0) return 'settled'
      const waitMs = claimedFor(branches.leaves)
      if (waitMs > 0) {
        due.add(id, clock.now() + waitMs)
        return 'settled'
      }
      const merged = await merge(branches)
      if (!same(merged, shown)) {
        const written = await writer.write(merged)
        if (written.kind === 'refused') log.error({ doc: id, ...written }, 'CouchDB refuses the merged document')
        if (written.kind === 'conflict' || written.kind === 'refused') return 'not-taken'
      }
      await takeOut(id, others)
      onResolved()
      log.info(
        { doc: id, type: merged.type, state: merged.state, branches: branches.leaves.length },
        'conflict resolved',
      )
      return 'settled'
    } catch (thrown) {
      if (thrown instanceof CouchError) return thrown.code === 'not_found' ? 'settled' : 'not-taken'
      throw thrown
    }
  }

  /** Those that grew meanwhile are no leaves any more: they will be seen again. */
  async function takeOut(id: string, losing: readonly StoredDoc[]): Promise<void> {
    const leaves = (await database.leaves(id, { signal })).filter(({ _deleted }) => !_deleted)
    const out = leaves.filter(({ _rev }) => losing.some((leaf) => leaf._rev === _rev))
    const kept = leaves.filter((leaf) => !out.includes(leaf))
    if (kept.length > 0) await database.merge(takingOut(out, kept), { signal })
  }
}

/** But for the order of fields. */
const same = (a: Doc, b: Doc): boolean => text(a) === text(b)
const text = ({ _conflicts, ...doc }: Doc) => JSON.stringify(Object.entries(doc).sort(([a], [b]) => (a < b ? -1 : 1)))
