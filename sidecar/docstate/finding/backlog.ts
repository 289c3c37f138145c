import type { Logger } from 'pino'
import type { Random } from '../../core/backoff.ts'
import { isoTime, type Clock } from '../../core/clock.ts'
import { untilAny } from '../../core/until-any.ts'
import { withTimeout } from '../../core/timeout.ts'
import { CouchError } from '../../couch/couch-errors.ts'
import type { Partition } from '../../workers/partitioning.ts'
import type { HandlerQueue } from './handler-queues.ts'
import type { ReadAndDispatch } from './read-and-dispatch.ts'
import type { ListPages } from './pages.ts'
import { rangesOf } from './ranges.ts'

export interface BacklogOptions {
  readonly partition: Partition
  readonly readAndDispatch: ReadAndDispatch
  readonly listPages: ListPages
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** How long the feed waits for a handler, and with it the documents of all others. */
const HOLD_MS = 2000
/** As long as this no handler of a queue has ended, with all of its memory taken. */
const STUCK_MS = 60_000

/** A queue with more work than it has room for. */
interface Behind {
  readonly queue: HandlerQueue
  list: AsyncGenerator<string[]> | undefined
  /** Found, and not yet offered. */
  ids: readonly string[]
  /** More came by after the list was begun. */
  again: boolean
}

/**
 * What waits for handlers that are slower than the feed. The documents are not held: they stand in the list, and are
 * read from there as fast as their handler takes them, while the feed goes on with those of all others.
 */
export class Backlog {
  readonly #options: BacklogOptions
  readonly #behind = new Map<HandlerQueue, Behind>()
  #woken: () => void = () => undefined

  constructor(options: BacklogOptions) {
    this.#options = options
  }

  /** How many queues have more work than room. */
  get size(): number {
    return this.#behind.size
  }

  /** For the feed: waits a little for room in a full queue. True if there is; otherwise the list has the document. */
  async hold(queue: HandlerQueue, signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#options
    if (!this.#behind.has(queue) && (await withTimeout(clock, HOLD_MS, queue.share.whenRoom(signal), signal)))
      return true
    this.add(queue)
    return false
  }

  /** Reads from the list what is ready in this queue, as there is room. */
  add(queue: HandlerQueue): void {
    const known = this.#behind.get(queue)
    if (known) known.again = true
    else {
      this.#behind.set(queue, { queue, list: undefined, ids: [], again: false })
      this.#options.log.debug(namesOf(queue), 'its handler is behind; what waits for it is read from the list')
      this.#woken()
    }
  }

  /** Until the signal aborts; rejects with its reason. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#options
    for (;;) {
      const behind = await this.#nextWithRoom(signal)
      this.#behind.delete(behind.queue) // and set again as the last: each in turn
      this.#behind.set(behind.queue, behind)
      try {
        await this.#step(behind, signal)
      } catch (thrown) {
        if (!(thrown instanceof CouchError)) throw thrown
        log.debug({ ...namesOf(behind.queue), code: thrown.code }, 'could not read what waits')
        behind.list = undefined
        await clock.sleep(1000 + random() * 4000, signal)
      }
    }
  }

  async #step(behind: Behind, signal: AbortSignal): Promise<void> {
    const { queue } = behind
    if (behind.ids.length > 0) {
      behind.ids = await this.#options.readAndDispatch(behind.ids, () => false, signal)
      return
    }
    behind.list ??= this.#list(queue, signal)
    const { value, done } = (await behind.list.next()) as IteratorResult<string[], undefined>
    if (!done) behind.ids = value
    else if (!behind.again) this.#behind.delete(queue)
    else {
      behind.list = undefined
      behind.again = false
    }
  }

  async #nextWithRoom(signal: AbortSignal): Promise<Behind> {
    for (;;) {
      signal.throwIfAborted()
      const all = [...this.#behind.values()]
      const withRoom = all.filter(({ queue }) => !queue.share.full)
      const first = Math.min(...withRoom.map(({ queue }) => queue.registration.options.priority))
      const found = withRoom.find(({ queue }) => queue.registration.options.priority === first)
      if (found) return found
      await this.#pause(all, signal)
    }
  }

  /** Until there is room in one of these queues, or a queue is added, or a minute is over. */
  async #pause(full: readonly Behind[], signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options
    const done = new AbortController()
    const held = full.map(({ queue }) => queue.share.used)
    const added = new Promise<void>((resolve) => (this.#woken = resolve))
    const inTime = await untilAny([signal, done.signal], async (until) => {
      const rooms = full.map(({ queue }) => queue.share.whenRoom(until))
      try {
        return await withTimeout(clock, STUCK_MS, Promise.race([...rooms, added]), signal)
      } finally {
        done.abort()
        await Promise.allSettled(rooms)
      }
    })
    for (const [at, { queue }] of inTime ? [] : full.entries()) {
      if (queue.share.used === held[at])
        log.warn(namesOf(queue), 'no handler has ended for a minute; its byte budget is used up')
    }
  }

  /** Ids of what is ready, and of what is due, as far as it is ours. */
  async *#list({ registration }: HandlerQueue, signal: AbortSignal): AsyncGenerator<string[]> {
    const { listPages, partition, clock } = this.#options
    const { type, state, byMachine } = registration
    const isRenamed = byMachine === 'rename'
    const waiting = { registration: byMachine ? undefined : registration, hasEnd: byMachine === 'timeout', isRenamed }
    for (const { status, until } of rangesOf({ ...waiting, paused: false }, isoTime(clock.now()))) {
      if (status === 'claimed') continue
      for await (const rows of listPages({ type, state }, status, until, signal)) {
        const ids = rows.map(({ id }) => id)
        yield registration.options.key ? ids : ids.filter((id) => partition.isOurs(registration, id))
      }
    }
  }
}

const namesOf = ({ registration: { type, state } }: HandlerQueue) => ({ type, state })
