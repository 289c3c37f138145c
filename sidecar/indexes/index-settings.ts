import type { SettingsOf } from '../../ddocs/lib/live-settings.ts'
import { expectedBy, fits, liveSettings } from '../../ddocs/lib/live-settings.ts'

/** Settings that can change at run time, by the document `config:ken` or a setter. `live-settings.ts` explains each. */
export type KenSettings = SettingsOf<'ken'>

/** Numeric settings: a setter of ken changes one of these. */
export type NumberSetting = {
  [K in keyof KenSettings]: KenSettings[K] extends number ? K : never
}[keyof KenSettings]

/** Throws `RangeError`, with the expected values, if the value is invalid. */
export function checkSetting(key: NumberSetting, value: number): void {
  const setting = liveSettings.ken[key]
  if (!fits(setting, value)) throw new RangeError(`${key}: expected ${expectedBy(setting)}, got ${value}`)
}
