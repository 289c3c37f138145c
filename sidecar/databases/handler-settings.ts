import { settingsId, type HandlerSettings } from '../../ddocs/lib/live-settings.ts'
import type { Database } from '../couch/database.ts'

/** What is set of handlers in place of their options. */
export async function handlerSettingsIn(control: Database, signal: AbortSignal): Promise<HandlerSettings> {
  const doc = await control.find(settingsId('handlers'), {}, { signal })
  return (doc?.handlers as HandlerSettings | undefined) ?? {}
}
