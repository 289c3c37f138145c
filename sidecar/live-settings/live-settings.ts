/**
 * Settings that change while the sidecar runs, from the documents `config:<part>` of the control database. The feed
 * only triggers reads: the documents of the last read are the settings. Each connect and each row of the feed triggers
 * a read, and so does a timer, about every minute. So no change is missed, even if the feed fails.
 *
 * While reads fail, the last settings apply. A missing database changes nothing: it may be recreated.
 */
import { onAbort } from '../core/on-abort.ts'
import type { Logger } from 'pino'
import {
  liveSettings,
  parts,
  settingsFaults,
  settingsId,
  usable,
  type LiveSetting,
  type LiveValue,
  type Part,
  type SettingsOf,
} from '../../ddocs/lib/live-settings.ts'
import { fullJitter, type Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import { Condition } from '../core/condition.ts'
import type { Database } from '../couch/database.ts'
import { CouchError } from '../couch/couch-errors.ts'
import { createEvents, type Events } from '../events/channels.ts'
import { follow } from '../feed/follow.ts'
import type { Doc, Seq } from '../couch/documents.ts'
import { parseLine, type Source } from '../feed/source.ts'

export interface LiveSettingsOptions {
  /** The control database. */
  readonly database: Database
  /** Receives `settings:changed`. */
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
  /** Follows the settings until the signal aborts, then resolves. Throws at a second call. */
  run(signal: AbortSignal): Promise<void>
  /**
   * Resolves after the first read; until then all settings are defaults. A missing database counts as read: it has no
   * settings. Rejects with the signal's reason.
   */
  whenKnown(signal: AbortSignal): Promise<void>
  /** All current settings of a part. */
  of<P extends Part>(part: P): SettingsOf<P>
  /** Calls the listener after each change of a value, until the signal aborts. Errors of the listener are logged. */
  onChange<P extends Part>(part: P, listener: (settings: SettingsOf<P>) => void, signal?: AbortSignal): void
}

/** Mean interval of reads without a trigger. */
const NOW_AND_THEN_MS = 60_000
/** A read that is not answered within this time is sent once more. Milliseconds. */
const LOOK_BEGINS_MS = 10_000
const SLOWLY_MS = 30_000
const BACKOFF = { baseMs: 250, capMs: 15_000 }

export function createLiveSettings(options: LiveSettingsOptions): LiveSettings {
  const { database, clock, random, log } = options
  const ids = parts.map(settingsId)
  const current = new Current(options)
  const known = new Condition()
  let isKnown = false
  let hasRun = false
  /** Ends the pause before the next read, even if the pause has not begun yet. */
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
        log.debug({ code: thrown.code, reason: thrown.message }, 'cannot read the live settings')
      }
      await clock.sleep(pauseMs, pausing.signal).catch(() => undefined)
    }
  }

  async function look(signal: AbortSignal): Promise<void> {
    const docs = await database.getMany(ids, { signal, beginsWithinMs: LOOK_BEGINS_MS })
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
 * Changes of a few documents, without their ids. CouchDB finds up to a hundred documents by id: following from the
 * start costs no more than from the end. PouchDB scans all changes.
 */
const changesOfFew = (database: Database, ids: readonly string[]): Source<{ readonly seq: Seq }> => ({
  name: `GET /${database.name}/_changes`,
  life: (checkpoint, signal) => database.life(checkpoint, { signal }),
  open: (query, signal) => database.changes({ ...query, filter: '_doc_ids', doc_ids: JSON.stringify(ids) }, signal),
  parse: (request, line) => parseLine(request, line, ({ seq }) => ({ seq })),
})

type All = { readonly [P in Part]: SettingsOf<P> }

/** The current settings, and the listeners to their changes. */
class Current {
  readonly #options: Pick<LiveSettingsOptions, 'events' | 'log'>
  /** One channel for each part. A subscriber that throws does not affect the others. */
  readonly #listeners: Events
  #all = Object.fromEntries(parts.map((part) => [part, readSettings(part, undefined).settings])) as unknown as All
  /** Last logged faults of each part's document. */
  readonly #said = new Map<Part, string>()

  constructor(options: Pick<LiveSettingsOptions, 'events' | 'log'>) {
    this.#options = options
    this.#listeners = createEvents(options)
  }

  of<P extends Part>(part: P): SettingsOf<P> {
    return this.#all[part]
  }

  onChange<P extends Part>(part: P, listener: (settings: SettingsOf<P>) => void, signal?: AbortSignal): void {
    this.#listeners.subscribe(part, ({ event }) => listener(event as SettingsOf<P>), { ...(signal && { signal }) })
  }

  /** Applies the document of a part; `undefined` if the database has none. */
  take(part: Part, doc: Doc | undefined): void {
    const { events, log } = this.#options
    const { settings, faults } = readSettings(part, doc)
    this.#complain(part, faults.join('; '))
    const before = this.#all[part]
    const changed = (Object.keys(settings) as (keyof typeof settings)[]).filter(
      (key) => !isSame(settings[key], before[key]),
    )
    if (changed.length === 0) return
    this.#all = { ...this.#all, [part]: settings }
    const pick = (from: typeof settings) => Object.fromEntries(changed.map((key) => [key, from[key]]))
    log.info({ part, from: pick(before), to: pick(settings) }, 'live settings changed')
    this.#listeners.channel(part)?.publish(settings)
    events.channel('settings:changed')?.publish({ part, settings })
  }

  /** Logs the same faults only once. */
  #complain(part: Part, reason: string): void {
    if (reason !== '' && reason !== this.#said.get(part)) {
      this.#options.log.warn({ part, reason }, 'invalid live settings are ignored; their defaults apply')
    }
    this.#said.set(part, reason)
  }
}

const isSame = (one: LiveValue, other: LiveValue) => JSON.stringify(one) === JSON.stringify(other)

/** Settings of a part, read from its document. */
interface Read<P extends Part> {
  /** Missing and invalid values have their defaults. */
  readonly settings: SettingsOf<P>
  /** Invalid values, as sentences: a document may have been written while no guard was deployed. */
  readonly faults: readonly string[]
}

function readSettings<P extends Part>(part: P, doc: Doc | undefined): Read<P> {
  const values = Object.entries<LiveSetting>(liveSettings[part]).map(([key, setting]) => {
    return [key, usable(setting, doc?.[key]) ?? setting.default] as const
  })
  return { settings: Object.fromEntries(values) as SettingsOf<P>, faults: doc ? settingsFaults(doc) : [] }
}
