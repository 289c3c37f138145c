/**
 * Runs both replications between a local database and its remote one as one session: one-shot, or live until the signal
 * aborts. PouchDB's own retries are off: the caller decides. If one replication fails, the other still copies the
 * existing changes: a server that accepts no writes can still be read.
 */
import type { Db } from '../pouch.ts'
import type { Failure } from '../client-status.ts'
import { FEED_MS, type Remote } from './remote.ts'

export type Ended =
  { readonly kind: 'done' } | { readonly kind: 'failed'; readonly failure: Failure } | { readonly kind: 'aborted' }

export interface SessionOptions {
  readonly local: Db
  /** Closed with the session. */
  readonly remote: Remote
  readonly live: boolean
  /** Compares everything, even what was copied before. */
  readonly anew?: boolean
  readonly signal: AbortSignal
  readonly onCopied: (copied: Copied) => void
  /** Called each time that nothing is left to copy. */
  readonly onEven: () => void
  /** Called once both replications read from a stored checkpoint; with `anew`, that checkpoint is the start. */
  readonly onBegun?: () => void
  readonly onRefused: (id: string, reason: string) => void
}

export interface Copied {
  readonly direction: 'push' | 'pull'
  readonly docs: number
  /** `_id` and `_rev` of each document. */
  readonly revisions: readonly string[]
  /** Pending changes of the source, as far as it reports them. */
  readonly pending: number | undefined
}

/** Documents per request. */
const BATCH = 100

export async function runSession(options: SessionOptions): Promise<Ended> {
  const { local, remote, live, anew, signal } = options
  if (signal.aborted) return remote.close().then(() => ({ kind: 'aborted' }))
  const since = anew ? { since: 0 } : {}
  const how = { ...{ live, retry: false, heartbeat: false as const, timeout: FEED_MS, batch_size: BATCH }, ...since }
  const directions = { push: local.replicate.to(remote.db, how), pull: local.replicate.from(remote.db, how) }
  const both = [directions.push, directions.pull]
  const cancel = () => {
    for (const replication of both) replication.cancel()
    remote.end()
  }
  const even = { push: false, pull: false }
  const begun = new Set<'push' | 'pull'>()
  let failure: Failure | undefined

  for (const direction of ['push', 'pull'] as const) {
    const other = direction === 'push' ? 'pull' : 'push'
    const replication = directions[direction]
    let before = 0
    replication.on('change', (change) => {
      const { docs_written: written, docs, pending } = change
      const revisions = docs.map(({ _id, _rev }) => `${_id} ${_rev}`)
      options.onCopied({ direction, docs: written - before, revisions, pending })
      before = written
    })
    const begin = () => {
      if (begun.size < 2 && begun.add(direction).size === 2) options.onBegun?.()
    }
    replication.on('active', () => {
      begin()
      even[direction] = false
    })
    replication.on('paused', () => {
      begin()
      even[direction] = true
      if (failure) cancel()
      else if (even[other]) options.onEven()
    })
    replication.on('denied', (refused) => {
      const { id = '', reason, message } = refused as { id?: string; reason?: string; message?: string }
      options.onRefused(id, reason ?? message ?? 'refused')
    })
    replication.on('error', (thrown) => {
      failure ??= remote.failureOf(thrown)
      if (even[other]) cancel() // the other one waits in its feed
    })
  }

  signal.addEventListener('abort', cancel)
  await Promise.allSettled(both)
  signal.removeEventListener('abort', cancel)
  remote.end()
  // A cancelled replication runs one more step, with a request to its source that no caller awaits.
  await new Promise((resolve) => setTimeout(resolve))
  await remote.close()
  if (signal.aborted) return { kind: 'aborted' }
  return failure ? { kind: 'failed', failure } : { kind: 'done' }
}
