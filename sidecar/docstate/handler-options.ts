import { z } from 'zod'
import { ConfigError } from '../core/errors.ts'
import type { HandlerOptions } from './types.ts'
import type { StoredDoc } from '../couch/documents.ts'

const ms = z.number().finite().positive()

const schema = z.strictObject({
  concurrency: z.int().positive().prefault(32),
  attempts: z.int().positive().prefault(20),
  backoff: z.strictObject({ baseMs: ms.prefault(1000), capMs: ms.prefault(4 * 3_600_000) }).prefault({}),
  onLost: z.enum(['park', 'retry']).prefault('park'),
})

/** What is left out, or undefined, has its default. Throws `ConfigError` for anything that is no option. */
export function withDefaults(options: HandlerOptions, whose: string): Required<HandlerOptions> {
  const parsed = schema.safeParse(options)
  if (parsed.success) return parsed.data
  throw new ConfigError(parsed.error.issues.map(({ path, message }) => `${whose}: ${path.join('.')}: ${message}`))
}

/** For what is to become true in the end: it is never given up. */
export const UNTIL_DONE: HandlerOptions = {
  attempts: Number.MAX_SAFE_INTEGER,
  backoff: { baseMs: 1000, capMs: 300_000 },
}

export const handlerDefaults: Required<HandlerOptions> = withDefaults({}, 'defaults')

/**
 * A handler for the end of a document: it is deleted. What stays is a tombstone that says what it was, and nothing that stood
 * in it.
 */
export const forget = <State extends string>({ _id, _rev, type, state }: StoredDoc & { readonly state: State }) =>
  Promise.resolve({ _id, _rev, type, state, _deleted: true as const })
