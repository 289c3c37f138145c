import type { Logger } from 'pino'
import {
  parts,
  type LiveValue,
  type Part,
  type SettingsOf,
  liveSettings,
  settingsFaults,
  usable,
  type LiveSetting,
} from '../../ddocs/lib/live-settings.ts'
import type { Doc } from '../couch/documents.ts'
import { createEvents, type Events } from '../events/channels.ts'

export interface CurrentOptions {
  /** Receives `settings:changed`. */
  readonly events: Events
  readonly log: Logger
}

type All = { readonly [P in Part]: SettingsOf<P> }

/** The current settings, and the listeners to their changes. */
export class Current {
  readonly #options: CurrentOptions
  /** One channel for each part. A subscriber that throws does not affect the others. */
  readonly #listeners: Events
  #all = Object.fromEntries(parts.map((part) => [part, readSettings(part, undefined).settings])) as unknown as All
  /** Last logged faults of each part's document. */
  readonly #said = new Map<Part, string>()

  constructor(options: CurrentOptions) {
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
