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
  /** Where changes are published. */
  readonly events: Events
  readonly log: Logger
}

type All = { readonly [P in Part]: SettingsOf<P> }

/** The settings that hold now, and who wants to know when they change. */
export class Current {
  readonly #options: CurrentOptions
  /** A channel for each part. A subscriber that throws harms no other. */
  readonly #listeners: Events
  #all = Object.fromEntries(parts.map((part) => [part, readSettings(part, undefined).settings])) as unknown as All
  /** What was said last to be wrong with each part's document. */
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

  /** Takes in what the database holds now: a document, or none. */
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

  /** Once for as long as the same is wrong. */
  #complain(part: Part, reason: string): void {
    if (reason !== '' && reason !== this.#said.get(part)) {
      this.#options.log.warn({ part, reason }, 'invalid live settings are ignored; their defaults apply')
    }
    this.#said.set(part, reason)
  }
}

const isSame = (one: LiveValue, other: LiveValue) => JSON.stringify(one) === JSON.stringify(other)

/** The settings of a part, as a document has them, or none. */
interface Read<P extends Part> {
  /** What is not in the document, or cannot be used, has its default. */
  readonly settings: SettingsOf<P>
  /** What is in it and cannot be used, as sentences: it may have been written where no guard was deployed. */
  readonly faults: readonly string[]
}

function readSettings<P extends Part>(part: P, doc: Doc | undefined): Read<P> {
  const values = Object.entries<LiveSetting>(liveSettings[part]).map(([key, setting]) => {
    return [key, usable(setting, doc?.[key]) ?? setting.default] as const
  })
  return { settings: Object.fromEntries(values) as SettingsOf<P>, faults: doc ? settingsFaults(doc) : [] }
}
