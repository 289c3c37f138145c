import { z } from 'zod'
import { fullJitter, type Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import type { Couch } from '../../couch/client.ts'
import { CouchError } from '../../couch/errors.ts'

export interface FollowDbsOptions {
  readonly couch: Couch
  readonly clock: Clock
  readonly random: Random
  /** One was made or deleted, or its shards have changed. */
  readonly onChange: (database: string, deleted: boolean) => void
  /** It begins, or goes on after a break: what was before may have been missed. */
  readonly onAgain: () => void
}

const place = z.object({ update_seq: z.number() })
const changes = z.object({
  results: z.array(z.object({ id: z.string(), deleted: z.boolean().optional() })),
  last_seq: z.number(),
})

const PATH = '_node/_local/_dbs'
/** A node keeps an answer to itself until it is whole: one after the other, each until something has changed. */
const ANSWER_MS = 30_000
const BACKOFF = { baseMs: 250, capMs: 15_000 }

/**
 * Follows a node's own list of the databases, one document for each, from now on, until the signal aborts, or until it
 * turns out that there is none. CouchDB does not promise that it can be read: it only tells at once what a sweep would
 * find later.
 */
export async function followDbs(options: FollowDbsOptions, signal: AbortSignal): Promise<void> {
  const { couch, clock, random, onChange, onAgain } = options

  async function followOnce(onAnswer: () => void): Promise<void> {
    let { update_seq: since } = await couch.request({ path: PATH, signal }, place)
    onAgain()
    for (;;) {
      const query = { feed: 'longpoll', since, timeout: ANSWER_MS }
      const request = { path: `${PATH}/_changes`, query, timeoutMs: 2 * ANSWER_MS, waits: true, signal }
      const { results, last_seq } = await couch.request(request, changes)
      onAnswer()
      for (const { id, deleted = false } of results) onChange(id, deleted)
      since = last_seq
    }
  }

  for (let failures = 1; !signal.aborted; failures++) {
    try {
      await followOnce(() => (failures = 1))
    } catch (thrown) {
      if (signal.aborted) return
      if (!(thrown instanceof CouchError)) throw thrown
      if (thrown.retry === 'never') return
      await clock.sleep(fullJitter(BACKOFF, failures, random), signal).catch(() => undefined)
    }
  }
}
