/**
 * What can be set while the sidecar runs: for each part of it a document `config:<part>` in the control database, with
 * any of these keys. What it leaves out has its default. Checked in `validate_doc_update` and again by the sidecar, so
 * it imports nothing of either world. docs/live-settings.md is made of it.
 */
import { has, isObject, quote, type Doc } from './document.ts'
import { parseDuration } from './duration.ts'
import { unknownFaults } from './shape.ts'

export type LiveSetting = YesOrNo | WholeNumber | Names | RateSetting | ForEachHandler

interface YesOrNo {
  readonly kind: 'boolean'
  readonly default: boolean
  /** In half a sentence. */
  readonly meaning: string
}

interface WholeNumber {
  readonly kind: 'whole-number'
  /** Of what, in the plural. */
  readonly unit: string
  readonly min: number
  readonly max: number
  /** Undefined: what the code says. */
  readonly default: number | undefined
  readonly meaning: string
}

interface Names {
  readonly kind: 'names'
  /** Of what, in the plural. */
  readonly of: string
  readonly default: readonly string[]
  readonly meaning: string
}

interface RateSetting {
  readonly kind: 'rate'
  readonly default: undefined
  readonly meaning: string
}

interface ForEachHandler {
  readonly kind: 'for-each-handler'
  readonly default: HandlerSettings
  readonly meaning: string
}

/** What holds of handlers in place of their options, by `type/state`. */
export type HandlerSettings = Readonly<Record<string, HandlerSetting>>

export interface HandlerSetting {
  readonly paused?: boolean
  readonly concurrency?: number
  readonly limit?: { readonly count: number; readonly per: string }
}

/** Of each handler. What is left out is as the handler's options say. */
export const handlerSettings = {
  paused: {
    kind: 'boolean',
    default: false,
    meaning: 'while `true` no run begins, in any database; what runs goes on to its end, and times of states still end',
  },
  concurrency: {
    kind: 'whole-number',
    unit: 'runs',
    min: 1,
    max: 100_000,
    default: undefined,
    meaning: 'how many documents run at the same time in each process',
  },
  limit: {
    kind: 'rate',
    default: undefined,
    meaning: 'so many runs begin in so much time, in all workers and databases together',
  },
} as const satisfies Readonly<Record<keyof HandlerSetting, LiveSetting>>

/** The longest time that can be set: far below the 24 days at which a timer of Node's would fire at once. */
const DAY_MS = 86_400_000

/** For how long something is put off. */
const delay = { kind: 'whole-number', unit: 'milliseconds', min: 0, max: DAY_MS } as const

/** How much may go on at once. */
const channels = { kind: 'whole-number', unit: 'builds', min: 0, max: 1000 } as const

export const liveSettings = {
  handlers: {
    handlers: {
      kind: 'for-each-handler',
      default: {},
      meaning: 'what holds of a handler in place of its options, by its `type/state`',
    },
  },
  global_changes: {
    update_db: {
      kind: 'boolean',
      default: true,
      meaning: 'whether events of databases are gathered and written; off, those that are pending are dropped',
    },
    max_event_delay: { ...delay, default: 25, meaning: 'how long events are gathered before they go to the writer' },
    max_write_delay: { ...delay, default: 25, meaning: 'how long the writer gathers them before it writes' },
    sweep_interval: {
      ...delay,
      min: 1000,
      default: 60_000,
      meaning:
        'between two looks at all databases, for what no feed has told; 5000 at most where the server has no feed of them',
    },
  },
  ken: {
    batch_channels: { ...channels, default: 20, meaning: 'builds at once of indexes that are far behind' },
    incremental_channels: {
      ...channels,
      default: 80,
      meaning: 'builds at once, beside those, of indexes that are only little behind; both 0: none at all',
    },
    max_incremental_updates: {
      kind: 'whole-number',
      unit: 'changes',
      min: 1,
      max: 1_000_000_000,
      default: 1000,
      meaning: 'from how many an index is far behind',
    },
    batch_size: {
      kind: 'whole-number',
      unit: 'changes',
      min: 1,
      max: 1_000_000_000,
      default: 1,
      meaning: 'how many gather in a database before its indexes are built again',
    },
    delay: { ...delay, default: 5000, meaning: 'after which they are built with fewer' },
    prune_interval: {
      ...delay,
      min: 1001,
      default: 60_000,
      meaning: 'after which it is forgotten when an index was built',
    },
    limit: {
      kind: 'whole-number',
      unit: 'databases',
      min: 1,
      max: 1000,
      default: 20,
      meaning: 'how many are looked at at the same time',
    },
    min_free_disk: {
      kind: 'whole-number',
      unit: 'percent',
      min: 0,
      max: 99,
      default: 5,
      meaning: 'below which nothing is built, where the free part of the disk can be seen',
    },
    ignore: {
      kind: 'names',
      of: 'databases, `*` standing for any characters',
      default: [],
      meaning: 'whose indexes are left alone',
    },
  },
} as const satisfies Readonly<Record<string, Settings>>

type Settings = Readonly<Record<string, LiveSetting>>

type ValueOf<S> = S extends YesOrNo
  ? boolean
  : S extends Names
    ? readonly string[]
    : S extends ForEachHandler
      ? HandlerSettings
      : number

/** What a setting can be. */
export type LiveValue = boolean | number | readonly string[] | HandlerSettings

/** A part of the sidecar that has settings. */
export type Part = keyof typeof liveSettings

export type SettingsOf<P extends Part> = {
  readonly [K in keyof (typeof liveSettings)[P]]: ValueOf<(typeof liveSettings)[P][K]>
}

export const parts = Object.keys(liveSettings) as Part[]

const PREFIX = 'config:'

/** The document in which the settings of a part stand. */
export const settingsId = (part: Part): string => PREFIX + part

export const isSettings = ({ _id }: Doc): boolean => String(_id).indexOf(PREFIX) === 0

/** What is wrong with a document of settings, as sentences. None: it is well formed. */
export function settingsFaults(doc: Doc): string[] {
  const part = String(doc._id).slice(PREFIX.length)
  if (!has(liveSettings, part)) return [`_id: expected ${parts.map(settingsId).join(' or ')}, got ${quote(doc._id)}`]
  const settings: Settings = liveSettings[part as Part]
  const typeFits = doc.type === undefined || doc.type === 'config'
  return [
    ...(typeFits ? [] : [`type: expected "config" or nothing, got ${quote(doc.type)}`]),
    ...(doc.by === undefined || typeof doc.by === 'string'
      ? []
      : [`by: expected a name or nothing, got ${quote(doc.by)}`]),
    ...Object.keys(settings)
      .filter((key) => has(doc, key))
      .reduce<string[]>((faults, key) => faults.concat(faultsIn(settings[key]!, doc[key], key)), []),
    ...unknownFaults(doc, ['type', 'by', ...Object.keys(settings)]),
  ]
}

/** What is wrong with the value of a setting, as sentences. */
function faultsIn(setting: LiveSetting, value: unknown, name: string): string[] {
  if (setting.kind === 'for-each-handler' && isObject(value)) {
    return Object.keys(value).reduce<string[]>((faults, handler) => {
      return faults.concat(faultsOfHandler(value[handler], `${name}[${quote(handler)}]`))
    }, [])
  }
  return fits(setting, value) ? [] : [`${name}: expected ${expectedBy(setting)}, got ${quote(value)}`]
}

function faultsOfHandler(given: unknown, name: string): string[] {
  if (!isObject(given)) return [`${name}: expected an object, got ${quote(given)}`]
  return Object.keys(given).reduce<string[]>((faults, key) => {
    if (isOfHandler(key)) return faults.concat(faultsIn(handlerSettings[key], given[key], `${name}.${key}`))
    return faults.concat(`${name}: expected no keys but ${Object.keys(handlerSettings).join(', ')}, got ${quote(key)}`)
  }, [])
}

const isOfHandler = (key: string): key is keyof HandlerSetting => has(handlerSettings, key)

/** The part of a value that a setting can have; undefined if there is none. */
export function usable(setting: LiveSetting, value: unknown): unknown {
  if (setting.kind !== 'for-each-handler') return fits(setting, value) ? value : undefined
  const handlers: Record<string, unknown> = {}
  if (!isObject(value)) return undefined
  for (const handler of Object.keys(value)) {
    const given = value[handler]
    const fine: Record<string, unknown> = {}
    if (isObject(given))
      for (const key of Object.keys(given))
        if (isOfHandler(key) && fits(handlerSettings[key], given[key])) fine[key] = given[key]
    handlers[handler] = fine
  }
  return handlers
}

/** Whether a setting can have this value. */
export function fits(setting: LiveSetting, value: unknown): boolean {
  switch (setting.kind) {
    case 'boolean':
      return typeof value === 'boolean'
    case 'names':
      return Array.isArray(value) && value.every((name) => typeof name === 'string' && name !== '')
    case 'whole-number':
      return isWhole(value) && value >= setting.min && value <= setting.max
    case 'rate':
      return (
        isObject(value) &&
        Object.keys(value).every((key) => key === 'count' || key === 'per') &&
        isWhole(value.count) &&
        value.count > 0 &&
        typeof value.per === 'string' &&
        (parseDuration(value.per) || 0) > 0
      )
    case 'for-each-handler':
      return isObject(value) && faultsIn(setting, value, '').length === 0
  }
}

const isWhole = (value: unknown): value is number => typeof value === 'number' && Math.floor(value) === value

/** Which values those are, in words. */
export function expectedBy(setting: LiveSetting): string {
  switch (setting.kind) {
    case 'boolean':
      return 'true or false'
    case 'names':
      return `a list of names of ${setting.of}`
    case 'whole-number':
      return `a whole number of ${setting.unit} from ${setting.min} to ${setting.max}`
    case 'rate':
      return "a count and a time such as { count: 600, per: '1m' }"
    case 'for-each-handler':
      return 'an object with a key for each handler'
  }
}
