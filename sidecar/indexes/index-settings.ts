import type { SettingsOf } from '../../ddocs/lib/live-settings.ts'
import { expectedBy, fits, liveSettings } from '../../ddocs/lib/live-settings.ts'

/** What can be set while it runs, by the document `config:ken` or a setter. What each is for stands in that table. */
export type KenSettings = SettingsOf<'ken'>

/** With which the seed's setters are there: those of numbers. */
export type NumberSetting = {
  [K in keyof KenSettings]: KenSettings[K] extends number ? K : never
}[keyof KenSettings]

/** Throws `RangeError`, which says what was expected. */
export function checkSetting(key: NumberSetting, value: number): void {
  const setting = liveSettings.ken[key]
  if (!fits(setting, value)) throw new RangeError(`${key}: expected ${expectedBy(setting)}, got ${value}`)
}
