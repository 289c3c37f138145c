/**
 * Settings that can change while the sidecar runs. Each part of the sidecar has a document `config:<part>` in the
 * control database, with any of these keys. A missing key has its default. `validate_doc_update` and the sidecar both
 * check the document, so this module imports nothing specific to CouchDB or Node. docs/live-settings.md is generated
 * from it.
 */
import { has, isObject, quote, type Doc } from './document.ts'
import { parseDuration } from './duration.ts'
import { unknownFaults } from './shape.ts'

export type LiveSetting = YesOrNo | WholeNumber | Names | RateSetting | ForEachHandler

interface YesOrNo {
  readonly kind: 'boolean'
  readonly default: boolean
  /** Half a sentence, for the docs. */
  readonly meaning: string
}

interface WholeNumber {
  readonly kind: 'whole-number'
  /** What is counted, in the plural. */
  readonly unit: string
  readonly min: number
  readonly max: number
  /** Undefined: the code sets the value. */
  readonly default: number | undefined
  readonly meaning: string
}

interface Names {
  readonly kind: 'names'
  /** What is named, in the plural. */
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

/** Values that replace options of handlers, by `type/state`. */
export type HandlerSettings = Readonly<Record<string, HandlerSetting>>

export interface HandlerSetting {
  readonly paused?: boolean
  readonly concurrency?: number
  readonly limit?: { readonly count: number; readonly per: string }
}

/** Settings of each handler. For a missing key, the handler's option applies. */
export const handlerSettings = {
  paused: {
    kind: 'boolean',
    default: false,
    meaning:
      'while `true`, no run of this handler begins in any database; runs in progress finish, and timeouts of states still apply',
  },
  concurrency: {
    kind: 'whole-number',
    unit: 'runs',
    min: 1,
    max: 100_000,
    default: undefined,
    meaning: 'maximum concurrent runs in each process',
  },
  limit: {
    kind: 'rate',
    default: undefined,
    meaning:
      'maximum number of runs (`count`) that begin within a time (`per`), on all workers and in all databases together',
  },
} as const satisfies Readonly<Record<keyof HandlerSetting, LiveSetting>>

/** Longest delay that can be set: far below 24 days, from which on a Node timer fires at once. */
const DAY_MS = 86_400_000

const delay = { kind: 'whole-number', unit: 'milliseconds', min: 0, max: DAY_MS } as const

/** How many builds may run at once. */
const channels = { kind: 'whole-number', unit: 'builds', min: 0, max: 1000 } as const

export const liveSettings = {
  handlers: {
    handlers: {
      kind: 'for-each-handler',
      default: {},
      meaning: 'settings that replace options of a handler, under the key `type/state`',
    },
  },
  global_changes: {
    update_db: {
      kind: 'boolean',
      default: true,
      meaning: 'whether database events are gathered and written; `false` drops pending events',
    },
    max_event_delay: { ...delay, default: 25, meaning: 'how long events are gathered before they go to the writer' },
    max_write_delay: { ...delay, default: 25, meaning: 'how long the writer gathers events before it writes them' },
    sweep_interval: {
      ...delay,
      min: 1000,
      default: 60_000,
      meaning:
        'time between two sweeps, which find the events that no feed reported; if the server has no feed of all databases, at most 5000 is used',
    },
  },
  ken: {
    batch_channels: {
      ...channels,
      default: 20,
      meaning: 'maximum concurrent builds on all workers together, for any index',
    },
    incremental_channels: {
      ...channels,
      default: 80,
      meaning:
        'additional concurrent builds, only for indexes that lack few changes (`max_incremental_updates`); if this and `batch_channels` are 0, no index is built',
    },
    max_incremental_updates: {
      kind: 'whole-number',
      unit: 'changes',
      min: 1,
      max: 1_000_000_000,
      default: 1000,
      meaning: 'an index that lacks fewer changes than this may use `incremental_channels`',
    },
    batch_size: {
      kind: 'whole-number',
      unit: 'changes',
      min: 1,
      max: 1_000_000_000,
      default: 1,
      meaning: 'number of new changes after which an index is built again without the `delay`',
    },
    delay: {
      ...delay,
      default: 5000,
      meaning: 'time since the last build after which fewer changes than `batch_size` are enough for a build',
    },
    prune_interval: {
      ...delay,
      min: 1001,
      default: 60_000,
      meaning:
        'time after which the sidecar forgets the last build of an index; the next change then starts a build without `delay`',
    },
    limit: {
      kind: 'whole-number',
      unit: 'databases',
      min: 1,
      max: 1000,
      default: 20,
      meaning: 'maximum databases whose indexes are checked at the same time',
    },
    min_free_disk: {
      kind: 'whole-number',
      unit: 'percent',
      min: 0,
      max: 99,
      default: 5,
      meaning:
        'no index is built while less than this percentage of the disk is free; no effect if the free space is unknown',
    },
    ignore: {
      kind: 'names',
      of: 'databases, `*` standing for any characters',
      default: [],
      meaning: 'databases whose indexes are not built',
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

/** Value of a setting. */
export type LiveValue = boolean | number | readonly string[] | HandlerSettings

/** A part of the sidecar that has settings. */
export type Part = keyof typeof liveSettings

export type SettingsOf<P extends Part> = {
  readonly [K in keyof (typeof liveSettings)[P]]: ValueOf<(typeof liveSettings)[P][K]>
}

export const parts = Object.keys(liveSettings) as Part[]

const PREFIX = 'config:'

/** Id of the document with the settings of a part. */
export const settingsId = (part: Part): string => PREFIX + part

export const isSettings = ({ _id }: Doc): boolean => String(_id).indexOf(PREFIX) === 0

/** Faults of a settings document, as sentences; empty if the document is valid. */
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

/** Faults of the value of a setting, as sentences. */
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

/** The valid part of a value; undefined without one. */
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

/** Whether a value is valid for a setting. */
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

/** The valid values of a setting, in words. */
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
