import {
  fits,
  handlerSettings,
  settingsId,
  type HandlerSetting,
  type HandlerSettings,
} from '../../ddocs/lib/live-settings.ts'
import { didYouMean } from '../core/nearest.ts'
import type { Database } from '../couch/database.ts'
import { repeatOnConflict } from '../couch/repeat-on-conflict.ts'
import { listWorkers } from '../workers/list-workers.ts'
import { handlersOf } from './capabilities.ts'

const ID = settingsId('handlers')
/** Maximum tries: others may write the document at the same time. */
const TRIES = 20

/** New settings of handlers. `null` restores the handler's option; a missing field stays as it is. */
export type HandlerChange = { readonly [K in keyof HandlerSetting]: HandlerSetting[K] | null }

/**
 * Changes settings of these handlers, by `type/state`, in all databases and workers. Throws `CouchError`.
 *
 * @param control the control database
 * @param by name of the operator
 */
export async function changeHandlers(
  control: Database,
  names: readonly string[],
  change: HandlerChange,
  { by, signal }: { readonly by: string; readonly signal: AbortSignal },
): Promise<void> {
  await repeatOnConflict(TRIES, async () => {
    const doc = await control.find(ID, {}, { signal })
    const handlers = { ...(doc?.handlers as HandlerSettings | undefined) }
    for (const name of names) {
      const before = Object.hasOwn(handlers, name) ? handlers[name]! : {}
      const next = Object.entries({ ...before, ...change }).filter(([, value]) => value !== null && value !== undefined)
      if (next.length > 0) handlers[name] = Object.fromEntries(next)
      else delete handlers[name]
    }
    await control.put({ type: 'config', ...doc, _id: ID, handlers, by }, { signal })
  })
}

/**
 * Faults for the names that no registered worker has, with the nearest known name. Undefined if no worker is
 * registered: then handlers are unknown. Throws `CouchError`.
 *
 * @param control the control database
 */
export async function unknownHandlers(
  control: Database,
  names: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const known = new Set((await listWorkers(control, signal)).flatMap((worker) => handlersOf(worker)))
  if (known.size === 0) return undefined
  return names
    .filter((name) => !known.has(name))
    .map((name) => `expected a handler of a running worker, got ${name}${didYouMean(name, [...known])}`)
}

/** Stands for the value in the handler's options. */
export const BY_DEFAULT = 'default'

/** Parses `4`, or `default` (null). Returns a sentence for any other text. */
export function concurrencyFrom(text: string): number | null | string {
  if (text === BY_DEFAULT) return null
  const count = Number(text)
  return text !== '' && fits(handlerSettings.concurrency, count)
    ? count
    : `expected a whole number of runs from 1, or ${BY_DEFAULT}, got ${text}`
}

/** The limit in the format that `limitFrom` parses. */
export const limitInWords = ({ limit }: HandlerSetting = {}): string =>
  limit ? `${limit.count}/${limit.per}` : BY_DEFAULT

/** Parses `600/1m`, or `default` (null). Returns a sentence for any other text. */
export function limitFrom(text: string): HandlerSetting['limit'] | null | string {
  if (text === BY_DEFAULT) return null
  const [, count, per] = /^(\d+)\s*\/\s*(\S+)$/.exec(text) ?? []
  const limit = { count: Number(count), per: per ?? '' }
  return fits(handlerSettings.limit, limit)
    ? limit
    : `expected a count and a time such as 600/1m, or ${BY_DEFAULT}, got ${text}`
}
