import type { Logger } from 'pino'
import type { Clock } from '../../core/clock.ts'
import { createMutex } from '../../core/mutex.ts'
import { failureOf, stackOf } from '../../core/failure.ts'
import type { Database } from '../../couch/database.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { CouchError, type CouchErrorCode } from '../../couch/couch-errors.ts'
import type { Writer } from '../../couch/writer.ts'
import { docstateOf, type DispatchTable } from '../classify.ts'
import { withDocstate } from '../outcome-documents.ts'
import { readBranches, type Branches } from './branches.ts'
import { carryBodies, MOST_BYTES } from './merge-attachments.ts'
import type { DelayQueue } from '../finding/delay-queue.ts'
import { fold, mergedAlready, naming, ownerless, sameDocument, type Branch } from './fold.ts'
import type { RunAttempt } from '../run-attempt.ts'
import { oneType, type OneType } from './merge.ts'
import type { Telemetry } from '../telemetry.ts'
import { takingOut } from '../claims/rivals.ts'
import type { Waits } from '../waits.ts'

export interface ResolveOptions {
  readonly database: Database
  readonly writer: Writer
  readonly table: DispatchTable
  readonly delayQueue: DelayQueue
  readonly waits: Pick<Waits, 'branches' | 'stuck'>
  readonly telemetry: Telemetry
  readonly clock: Clock
  readonly log: Logger
  /** Ends all retries. */
  readonly signal: AbortSignal
}

/** Result of a step. `over`: no conflict is left. `stuck`: a person must act first, as `hint` says. */
type Step =
  { readonly kind: 'done' | 'over' | 'again' } | { readonly kind: 'stuck'; readonly why: string; readonly hint: string }

const DONE: Step = { kind: 'done' }
const OVER: Step = { kind: 'over' }
const AGAIN: Step = { kind: 'again' }
/** Delay before the document is read again: no row may bring its last revision. */
const AGAIN_MS = 1000
/** Codes with which CouchDB refuses a document for good. */
const REFUSALS: readonly CouchErrorCode[] = ['forbidden', 'too_large', 'bad_request']

/**
 * Merges the branches that replication has brought. First it writes the merged document on the branch that CouchDB
 * shows, and names the other branches in it. Then it deletes those branches. A worker that finds only the first step
 * done sees the names, and does the second.
 */
export function createResolve(options: ResolveOptions): RunAttempt {
  const { database, writer, table, delayQueue, telemetry, clock, log, signal } = options
  const { branches: leases, stuck } = options.waits
  const carrying = createMutex() // attachment bodies of one document at a time

  async function merge(id: string, branches: Branches, { type, own }: OneType): Promise<StoredDoc> {
    const [first, ...losing] = own
    const others: Branch[] = []
    for (const leaf of losing) others.push({ leaf, ...(await branches.begin(first!, leaf)) })
    const merged = fold(first!, others, {
      machine: table.machines[type],
      resolver: table.resolvers?.get(type),
      onFault: (fault) =>
        log.error(
          { doc: id, type, fault: failureOf(fault).reason, stack: stackOf(fault) },
          'the resolver failed; the document is merged by the default rules',
        ),
    })
    const { _rev } = branches.leaves[0]!
    return first!._rev === _rev ? merged : withDocstate({ ...merged, _rev }, ownerless(docstateOf(merged)))
  }

  async function write(merged: StoredDoc, leaves: readonly StoredDoc[]): Promise<Step> {
    if (!merged._attachments) {
      const written = await writer.write(merged)
      return written.kind === 'conflict' ? AGAIN : written.kind === 'refused' ? refused(written) : DONE
    }
    return carrying(async () => {
      const whole = await carryBodies(database, merged, leaves, { signal })
      if (whole === 'too-large') return TOO_LARGE
      try {
        await database.put(whole, { signal }) // alone: one refused attachment fails the whole request
        return DONE
      } catch (thrown) {
        if (!(thrown instanceof CouchError)) throw thrown
        if (thrown.code === 'conflict') return AGAIN
        if (REFUSALS.includes(thrown.code)) return refused(thrown)
        throw thrown
      }
    })
  }

  /** Deletes the losing leaves. A branch that grew meanwhile has a new leaf: a later attempt merges it. */
  async function takeOut(id: string, losing: readonly StoredDoc[]): Promise<Step> {
    const isLosing = ({ _rev }: StoredDoc) => losing.some((leaf) => leaf._rev === _rev)
    const living = async () => (await database.leaves(id, { signal })).filter(({ _deleted }) => !_deleted)
    const leaves = await living()
    const out = leaves.filter(isLosing)
    const kept = leaves.filter((leaf) => !isLosing(leaf))
    if (kept.length === 0) return AGAIN
    if (out.length === 0) return OVER // another worker deleted them
    await database.merge(takingOut(out, kept, 'merged'), { signal })
    return (await living()).some(isLosing) ? NOT_DELETED : DONE
  }

  async function resolve(id: string): Promise<Step | undefined> {
    const branches = await readBranches(database, id, signal)
    const { leaves } = branches
    const [shown, ...others] = leaves
    if (!shown) return undefined
    if (others.length === 0) return OVER
    const known = mergedAlready(leaves)
    const losing = others.filter((leaf) => !known.includes(leaf))
    const typed = oneType([shown, ...losing], table)
    if (!typed) return undefined // a type of the app, which resolves it
    if (losing.length > 0) {
      const waitMs = leases.remaining(id, [shown, ...losing])
      if (waitMs > 0) {
        delayQueue.add(id, clock.now() + waitMs)
        return undefined
      }
      const merged = await merge(id, branches, typed)
      // With several branches, some may stay beside the merged document: it must name them.
      if (losing.length > 1 || !sameDocument(merged, shown)) {
        const written = await write(naming(merged, others), leaves)
        if (written.kind !== 'done') return written
      }
      const types = typed.strange.map(({ type }) => type)
      if (types.length > 0) log.warn({ doc: id, type: typed.type, types }, 'removed branches of other types')
    }
    return takeOut(id, others)
  }

  return async (attempt) => {
    const { id, doc } = attempt
    const restMs = stuck.remaining(doc)
    if (restMs > 0) {
      delayQueue.add(id, clock.now() + restMs)
      return 'settled'
    }
    try {
      const step = await resolve(id)
      if (!step) return 'settled'
      if (step.kind === 'stuck') {
        const { why, hint } = step
        const isNews = stuck.add(doc)
        if (isNews) telemetry.counts.conflicts.stuck += 1
        delayQueue.add(id, clock.now() + stuck.remaining(doc))
        log[isNews ? 'error' : 'debug']({ doc: id, type: doc.type, why, hint }, 'a conflict cannot be resolved')
        return 'settled'
      }
      delayQueue.add(id, clock.now() + AGAIN_MS)
      if (step.kind === 'done') {
        leases.forget(id)
        stuck.forget(id)
        telemetry.counts.conflicts.resolved += 1
        const branches = 1 + (doc._conflicts?.length ?? 0)
        telemetry
          .channel('conflict:resolved')
          ?.publish({ ...telemetry.of(attempt), state: String(doc.state), branches })
        log.info({ doc: id, type: doc.type }, 'conflict resolved')
      }
      return 'settled'
    } catch (thrown) {
      if (thrown instanceof CouchError) return thrown.code === 'not_found' ? 'settled' : 'not-taken'
      throw thrown
    }
  }
}

const TOO_LARGE: Step = {
  kind: 'stuck',
  why: `a branch has attachments of more than ${MOST_BYTES} bytes that would have to be moved`,
  hint: 'write the intended document on top of the revision that CouchDB shows, and delete the other revisions',
}
const NOT_DELETED: Step = {
  kind: 'stuck',
  why: 'CouchDB rejects the deletion of the merged revisions',
  hint: 'let validate_doc_update allow deletions by the user of the sidecar, or delete these revisions',
}
const refused = ({ code, reason }: { code: string; reason: string }): Step => ({
  kind: 'stuck',
  why: `CouchDB refuses the merged document (${code}): ${reason}`,
  hint: 'let validate_doc_update allow it, or write the intended document and delete the other revisions',
})
