/**
 * Both replications between a local database and its remote one, as one thing that begins and ends: one-shot, or live until
 * the signal aborts. What PouchDB would try again by itself, it does not here: the caller decides. When one of them
 * fails, the other still copies what there is: a server that accepts no writes can still be read.
 */
import type { Db } from '../pouch.ts'
import type { Failure } from '../client-status.ts'
import { FEED_MS, type Remote } from './remote.ts'

export type Ended =
  { readonly kind: 'done' } | { readonly kind: 'failed'; readonly failure: Failure } | { readonly kind: 'aborted' }

export interface SessionOptions {
  readonly local: Db
  /** Is closed with it. */
  readonly remote: Remote
  readonly live: boolean
  /** Everything is compared, also what was copied before. */
  readonly anew?: boolean
  readonly signal: AbortSignal
  readonly onCopied: (copied: Copied) => void
  /** Nothing is left to be copied now. Said again each time. */
  readonly onEven: () => void
  /** Both go on from a place that is written down: with `anew`, from the start. */
  readonly onBegun?: () => void
  readonly onRefused: (id: string, reason: string) => void
}

export interface Copied {
  readonly direction: 'push' | 'pull'
  readonly docs: number
  /** `_id` and `_rev` of each. */
  readonly revisions: readonly string[]
  /** Of the source, as far as it tells. */
  readonly pending: number | undefined
}

/** Documents in one request. */
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
      if (even[other]) cancel() // it waits in its feed for what may come
    })
  }

  signal.addEventListener('abort', cancel)
  await Promise.allSettled(both)
  signal.removeEventListener('abort', cancel)
  remote.end()
  // A replication that was cancelled takes one step more, in which it asks its source for what is not waited for.
  await new Promise((resolve) => setTimeout(resolve))
  await remote.close()
  if (signal.aborted) return { kind: 'aborted' }
  return failure ? { kind: 'failed', failure } : { kind: 'done' }
}
