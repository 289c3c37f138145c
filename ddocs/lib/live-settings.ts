/**
 * What can be set while the sidecar runs: for each part of it a document `config:<part>` in the control database, with
 * any of these keys. What it leaves out has its default. Checked in `validate_doc_update` and again by the sidecar, so
 * it imports nothing of either world. docs/live-settings.md is made of it.
 */
import { has, quote, type Doc } from './document.ts'
import { unknownFaults } from './shape.ts'

export type LiveSetting = YesOrNo | WholeNumber | Names

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
  readonly default: number
  readonly meaning: string
}

interface Names {
  readonly kind: 'names'
  /** Of what, in the plural. */
  readonly of: string
  readonly default: readonly string[]
  readonly meaning: string
}

/** The longest time that can be set: far below the 24 days at which a timer of Node's would fire at once. */
const DAY_MS = 86_400_000

/** For how long something is put off. */
const delay = { kind: 'whole-number', unit: 'milliseconds', min: 0, max: DAY_MS } as const

/** How much may go on at once. */
const channels = { kind: 'whole-number', unit: 'builds', min: 0, max: 1000 } as const

export const liveSettings = {
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

type ValueOf<S> = S extends YesOrNo ? boolean : S extends Names ? readonly string[] : number

/** What a setting can be. */
export type LiveValue = boolean | number | readonly string[]

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
    ...Object.keys(settings)
      .filter((key) => has(doc, key) && !fits(settings[key]!, doc[key]))
      .map((key) => `${key}: expected ${expectedBy(settings[key]!)}, got ${quote(doc[key])}`),
    ...unknownFaults(doc, ['type', ...Object.keys(settings)]),
  ]
}

/** Whether a setting can have this value. */
export function fits(setting: LiveSetting, value: unknown): boolean {
  if (setting.kind === 'boolean') return typeof value === 'boolean'
  if (setting.kind === 'names')
    return Array.isArray(value) && value.every((name) => typeof name === 'string' && name !== '')
  const { min, max } = setting
  return typeof value === 'number' && Math.floor(value) === value && value >= min && value <= max
}

/** Which values those are, in words. */
export function expectedBy(setting: LiveSetting): string {
  if (setting.kind === 'boolean') return 'true or false'
  if (setting.kind === 'names') return `a list of names of ${setting.of}`
  return `a whole number of ${setting.unit} from ${setting.min} to ${setting.max}`
}
