/**
 * Settings that change while the sidecar runs: follows the documents `config:<part>` of the control database. The
 * feed says when to look, and nothing else: what holds is what a look finds, and it looks whenever the feed begins, or
 * has a row, and now and then besides. So nothing is missed, whatever the feed does.
 *
 * As long as it cannot look, what it found last holds. A database that is not there tells nothing: it may be made again.
 */
import { onAbort } from '../core/on-abort.ts'
import type { Logger } from 'pino'
import { parts, settingsId, type Part, type SettingsOf } from '../../ddocs/lib/live-settings.ts'
import { fullJitter, type Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import { Condition } from '../core/condition.ts'
import type { Database } from '../couch/database.ts'
import { CouchError } from '../couch/couch-errors.ts'
import type { Events } from '../events/channels.ts'
import { follow } from '../feed/follow.ts'
import { Current } from './current.ts'
import type { Seq } from '../couch/documents.ts'
import { parseLine, type Source } from '../feed/source.ts'

export interface LiveSettingsOptions {
  /** The control database. */
  readonly database: Database
  readonly events: Events
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/**
 * @example
 * const settings = createLiveSettings({ database: couch.db('control'), events, clock, random, log })
 * void settings.run(signal)
 * await settings.whenKnown(signal)
 * const part = startPart(settings.of('global_changes'))
 * settings.onChange('global_changes', (now) => part.change(now), signal)
 */
export interface LiveSettings {
  /** Follows until the signal aborts, then resolves. Once only. */
  run(signal: AbortSignal): Promise<void>
  /**
   * Resolves when the documents were looked for: until then all settings are the defaults. Of a database that is not
   * there it is known that it holds none. Rejects with the signal's reason.
   */
  whenKnown(signal: AbortSignal): Promise<void>
  /** Of a part, as they hold now: all of them. */
  of<P extends Part>(part: P): SettingsOf<P>
  /** Calls after each change of a value, until the signal. What the listener throws is logged. */
  onChange<P extends Part>(part: P, listener: (settings: SettingsOf<P>) => void, signal?: AbortSignal): void
}

/** Between two looks of which nothing is the reason. */
const NOW_AND_THEN_MS = 60_000
const LOOK_TIMEOUT_MS = 10_000
const SLOWLY_MS = 30_000
const BACKOFF = { baseMs: 250, capMs: 15_000 }

export function createLiveSettings(options: LiveSettingsOptions): LiveSettings {
  const { database, clock, random, log } = options
  const ids = parts.map(settingsId)
  const current = new Current(options)
  const known = new Condition()
  let isKnown = false
  let hasRun = false
  /** Ends the pause before the next look, also one that has yet to begin. */
  let pausing = new AbortController()

  async function listen(signal: AbortSignal): Promise<void> {
    for await (const { kind } of follow({ source: changesOfFew(database, ids), clock, random }, signal)) {
      if (kind === 'connected' || kind === 'rows') pausing.abort()
    }
  }

  async function lookNowAndThen(signal: AbortSignal): Promise<void> {
    let failures = 0
    while (!signal.aborted) {
      pausing = new AbortController()
      let pauseMs = NOW_AND_THEN_MS * (0.8 + random() * 0.4)
      try {
        await look(signal)
        failures = 0
      } catch (thrown) {
        if (signal.aborted) return
        if (!(thrown instanceof CouchError)) throw thrown
        if (thrown.code === 'not_found') nowKnown()
        failures += 1
        pauseMs = thrown.retry === 'slowly' ? SLOWLY_MS : fullJitter(BACKOFF, failures, random)
        log.debug({ code: thrown.code, reason: thrown.message }, 'the live settings could not be looked at')
      }
      await clock.sleep(pauseMs, pausing.signal).catch(() => undefined)
    }
  }

  async function look(signal: AbortSignal): Promise<void> {
    const docs = await database.getMany(ids, { signal, timeoutMs: LOOK_TIMEOUT_MS })
    const found = new Map(docs.map((doc) => [doc._id, doc]))
    for (const part of parts) current.take(part, found.get(settingsId(part)))
    nowKnown()
  }

  function nowKnown(): void {
    isKnown = true
    known.changed()
  }

  return {
    async run(signal) {
      if (hasRun) throw new Error('the live settings were started twice')
      hasRun = true
      onAbort(signal, () => pausing.abort())
      await Promise.all([listen(signal), lookNowAndThen(signal)])
    },
    whenKnown: (signal) => known.until(() => isKnown, signal),
    of: (part) => current.of(part),
    onChange: (part, listener, signal) => current.onChange(part, listener, signal),
  }
}

/**
 * The changes of a few documents, without saying of which. CouchDB finds up to a hundred by their ids, so that following
 * them from the beginning costs no more than from the end; PouchDB looks through all changes.
 */
const changesOfFew = (database: Database, ids: readonly string[]): Source<{ readonly seq: Seq }> => ({
  name: `GET /${database.name}/_changes`,
  life: (checkpoint, signal) => database.life(checkpoint, { signal }),
  open: (query, signal) => database.changes({ ...query, filter: '_doc_ids', doc_ids: JSON.stringify(ids) }, signal),
  parse: (request, line) => parseLine(request, line, ({ seq }) => ({ seq })),
})
