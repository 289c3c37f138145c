import { settingsId, type HandlerSetting, type HandlerSettings } from '../../ddocs/lib/live-settings.ts'
import type { Database } from '../couch/database.ts'

/** Reads the live settings of handlers, which override their options. Throws `CouchError`. */
export async function handlerSettingsIn(control: Database, signal: AbortSignal): Promise<HandlerSettings> {
  const doc = await control.find(settingsId('handlers'), {}, { signal })
  return (doc?.handlers as HandlerSettings | undefined) ?? {}
}

/** The live setting of one handler, in words. */
export function settingInWords({ paused, concurrency, limit }: HandlerSetting = {}): string {
  const parts = [
    ...(paused ? ['paused'] : []),
    ...(concurrency === undefined ? [] : [`concurrency ${concurrency}`]),
    ...(limit === undefined ? [] : [`limit ${limit.count} in ${limit.per}`]),
  ]
  return parts.join(', ') || 'the options of the handler apply'
}
