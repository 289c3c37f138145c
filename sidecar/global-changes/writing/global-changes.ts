import type { Logger } from 'pino'
import type { Random } from '../../core/backoff.ts'
import type { Clock } from '../../core/clock.ts'
import { within } from '../../core/within.ts'
import type { Couch } from '../../couch/client.ts'
import { CouchError } from '../../couch/errors.ts'
import { Coverage, type Readings } from './coverage.ts'
import { EventWriter } from './event-writer.ts'
import { Gather } from './gather.ts'
import { Ledger } from './ledger.ts'
import { OwnFeeds } from './own-feeds.ts'
import { followServer } from './server-feed.ts'
import type { GlobalChangesSettings } from './settings.ts'
import type { Share } from './share.ts'
import { createSweep } from './sweep.ts'

export interface GlobalChangesOptions {
  readonly couch: Couch
  /** The database that the events are written into. */
  readonly name: string
  readonly share: Share
  readonly settings: GlobalChangesSettings
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** These documents were written. */
  readonly onWritten?: (ids: readonly string[]) => void
}

export interface GlobalChangesCounts {
  /** Events that wait for the first window, and documents that wait to be written. */
  readonly pending: { readonly events: number; readonly writes: number }
  readonly written: number
  readonly requests: number
  readonly conflicts: number
  /** Databases about which only a sweep had something to tell. */
  readonly swept: number
}

/** Writes down which databases were made, changed and deleted. */
export interface GlobalChanges {
  /** Until the signal aborts; then what is pending is written. Once only. */
  run(signal: AbortSignal): Promise<void>
  change(settings: GlobalChangesSettings): void
  counts(): GlobalChangesCounts
}

/** A sweep where nobody else tells of a change. */
const SWEEP_ALONE_MS = 5000
const OWN_FEEDS = 50
const LAST_WORDS_MS = 2000
const AGAIN_MS = 5000

export function createGlobalChanges(options: GlobalChangesOptions): GlobalChanges {
  const { couch, name, share, clock, random, log } = options
  const database = couch.db(name)
  const hard = new AbortController()
  const hasEvents = (other: string) => other !== name && other !== '_global_changes'
  let { settings } = options
  let hasServerFeed = true
  let swept = 0
  let wake = () => {}

  const ledger = new Ledger(database)
  const coverage = new Coverage(couch, ledger, clock)
  const writer = new EventWriter<Readings>({
    ...{ database, clock, random, log, signal: hard.signal },
    before: (ids) => coverage.before(ids, hard.signal),
    onWritten(ids, readings) {
      coverage.written(ids, readings)
      options.onWritten?.(ids)
    },
  })
  const gather = new Gather({ clock, settings: () => settings, share, hasEvents, write: (ids) => writer.add(ids) })
  const sweep = createSweep({ couch, ledger, coverage, hasEvents, write: (ids) => writer.add(ids) })
  const ownFeeds = new OwnFeeds({
    ...{ couch, clock, random, most: OWN_FEEDS },
    onUpdated: (database) => gather.tell('updated', database),
  })

  async function sweepOnce(signal: AbortSignal): Promise<void> {
    if (!settings.update_db) return
    const isFirst = swept === 0
    await ledger.own(share.buckets(), signal)
    const found = await sweep(share.buckets(), signal)
    swept += found.length
    if (found.length > 0) log[isFirst ? 'debug' : 'info']({ databases: found.length }, 'a sweep found database events')
    await writer.settled()
    await ledger.save(signal)
    if (!hasServerFeed) for (const database of found) ownFeeds.touch(database)
  }

  /** At once, then now and then, and whenever there is a reason to think that something was missed. */
  async function sweepNowAndThen(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const woken = new AbortController()
      wake = () => woken.abort()
      const until = AbortSignal.any([signal, woken.signal])
      let pauseMs = hasServerFeed ? settings.sweep_interval : Math.min(SWEEP_ALONE_MS, settings.sweep_interval)
      try {
        await sweepOnce(signal)
      } catch (thrown) {
        if (signal.aborted) return
        if (!(thrown instanceof CouchError)) throw thrown
        log.debug({ code: thrown.code, reason: thrown.message }, 'the databases could not be looked at')
        pauseMs = Math.min(pauseMs, AGAIN_MS)
      }
      await clock.sleep(pauseMs * (0.9 + random() * 0.2), until).catch(() => undefined)
    }
  }

  async function finish(): Promise<void> {
    ownFeeds.close()
    gather.flush()
    await within(
      clock,
      LAST_WORDS_MS,
      writer
        .settled()
        .then(() => ledger.save(hard.signal))
        .catch(() => undefined),
    )
    hard.abort(new Error('the sidecar has stopped'))
  }

  return {
    async run(signal) {
      share.onChange(() => wake(), signal)
      const following = followServer(
        {
          ...{ couch, clock, random, log },
          onEvent: (event, database) => gather.tell(event, database),
          onAgain: () => wake(),
          onThere(isThere) {
            hasServerFeed = isThere
            if (isThere) ownFeeds.close()
            wake()
          },
        },
        signal,
      )
      try {
        await Promise.all([following, sweepNowAndThen(signal)])
      } finally {
        await finish()
      }
    },
    change(next) {
      const wasOn = settings.update_db
      settings = next
      if (!next.update_db) {
        gather.clear()
        writer.clear()
      } else if (!wasOn) wake()
      gather.recheck()
    },
    counts: () => ({
      pending: { events: gather.pending.events, writes: gather.pending.writes + writer.pending },
      ...writer.counts,
      swept,
    }),
  }
}
