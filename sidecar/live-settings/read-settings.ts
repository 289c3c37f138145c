import {
  fits,
  liveSettings,
  settingsFaults,
  type LiveSetting,
  type Part,
  type SettingsOf,
} from '../../ddocs/lib/live-settings.ts'
import type { Doc } from '../couch/documents.ts'

/** The settings of a part, as a document has them, or none. */
export interface Read<P extends Part> {
  /** What is not in the document, or cannot be used, has its default. */
  readonly settings: SettingsOf<P>
  /** What is in it and cannot be used, as sentences: it may have been written where no guard was deployed. */
  readonly faults: readonly string[]
}

export function readSettings<P extends Part>(part: P, doc: Doc | undefined): Read<P> {
  const values = Object.entries<LiveSetting>(liveSettings[part]).map(([key, setting]) => {
    const given = doc?.[key]
    return [key, fits(setting, given) ? given : setting.default] as const
  })
  return { settings: Object.fromEntries(values) as SettingsOf<P>, faults: doc ? settingsFaults(doc) : [] }
}
