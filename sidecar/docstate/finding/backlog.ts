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

/** Maximum wait of the feed for one handler: the documents of all other handlers wait with it. */
const HOLD_MS = 2000
/** A full queue in which no handler ends for this long is logged. */
const STUCK_MS = 60_000

/** A queue with more work than room. */
interface Behind {
  readonly queue: HandlerQueue
  list: AsyncGenerator<string[]> | undefined
  /** Ids that are listed and not yet offered. */
  ids: readonly string[]
  /** More documents came after the list began. */
  again: boolean
}

/**
 * Documents that wait for handlers slower than the feed. They are not held in memory: the backlog reads them from the
 * list as fast as their handler takes them. The feed goes on with the documents of other handlers.
 */
export class Backlog {
  readonly #options: BacklogOptions
  readonly #behind = new Map<HandlerQueue, Behind>()
  #woken: () => void = () => undefined

  constructor(options: BacklogOptions) {
    this.#options = options
  }

  /** Number of queues with more work than room. */
  get size(): number {
    return this.#behind.size
  }

  /** Lets the feed wait briefly for room in a full queue. True if it has room; otherwise the list has the document. */
  async hold(queue: HandlerQueue, signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#options
    if (!this.#behind.has(queue) && (await withTimeout(clock, HOLD_MS, queue.share.whenRoom(signal), signal)))
      return true
    this.add(queue)
    return false
  }

  /** Reads the ready documents of this queue from the list, as room allows. */
  add(queue: HandlerQueue): void {
    const known = this.#behind.get(queue)
    if (known) known.again = true
    else {
      this.#behind.set(queue, { queue, list: undefined, ids: [], again: false })
      this.#options.log.debug(namesOf(queue), 'its handler is behind; the waiting documents are read from the view')
      this.#woken()
    }
  }

  /** Runs until the signal aborts; rejects with the signal's reason. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#options
    for (;;) {
      const behind = await this.#nextWithRoom(signal)
      this.#behind.delete(behind.queue) // set again as the last, so that queues take turns
      this.#behind.set(behind.queue, behind)
      try {
        await this.#step(behind, signal)
      } catch (thrown) {
        if (!(thrown instanceof CouchError)) throw thrown
        log.debug({ ...namesOf(behind.queue), code: thrown.code }, 'cannot read the waiting documents')
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

  /** Waits until one of these queues has room, a queue is added, or a minute has passed. */
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

  /** Ids of ready and due documents in our partition. */
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
