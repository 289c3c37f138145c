import { settingsId, type HandlerSetting, type HandlerSettings } from '../../ddocs/lib/live-settings.ts'
import type { Database } from '../couch/database.ts'

/** What is set of handlers in place of their options. */
export async function handlerSettingsIn(control: Database, signal: AbortSignal): Promise<HandlerSettings> {
  const doc = await control.find(settingsId('handlers'), {}, { signal })
  return (doc?.handlers as HandlerSettings | undefined) ?? {}
}

/** For people: what is set in place of its options. */
export function settingInWords({ paused, concurrency, limit }: HandlerSetting = {}): string {
  const parts = [
    ...(paused ? ['paused'] : []),
    ...(concurrency === undefined ? [] : [`concurrency ${concurrency}`]),
    ...(limit === undefined ? [] : [`limit ${limit.count} in ${limit.per}`]),
  ]
  return parts.join(', ') || 'as its options say'
}
