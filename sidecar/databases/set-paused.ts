import { settingsId, type HandlerSetting, type HandlerSettings } from '../../ddocs/lib/live-settings.ts'
import type { Database } from '../couch/database.ts'
import { repeatOnConflict } from '../couch/repeat-on-conflict.ts'

const ID = settingsId('handlers')
/** Others may write it at the same time. */
const TRIES = 20

/**
 * No run of these handlers begins any more, or again: by `type/state`, in all databases and workers. Throws `CouchError`.
 *
 * @param control the control database
 * @param by who does it
 */
export async function setPaused(
  control: Database,
  names: readonly string[],
  paused: boolean,
  { by, signal }: { readonly by: string; readonly signal: AbortSignal },
): Promise<void> {
  await repeatOnConflict(TRIES, async () => {
    const doc = await control.find(ID, {}, { signal })
    const handlers = { ...(doc?.handlers as HandlerSettings | undefined) }
    for (const name of names) {
      const { paused: _before, ...others }: HandlerSetting = Object.hasOwn(handlers, name) ? handlers[name]! : {}
      const next = paused ? { ...others, paused } : others
      if (Object.keys(next).length > 0) handlers[name] = next
      else delete handlers[name]
    }
    await control.put({ type: 'config', ...doc, _id: ID, handlers, by }, { signal })
  })
}
