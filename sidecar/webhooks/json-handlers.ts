import { z } from 'zod'
import type { Machines } from '../../ddocs/machine.ts'
import { ConfigError } from '../core/errors.ts'
import { failureOf } from '../core/failure.ts'
import type { Doc } from '../couch/documents.ts'
import type { Control } from '../docstate/control.ts'
import type { HandlersModule } from '../docstate/handlers.ts'
import type { HandlerOptions } from '../docstate/types.ts'
import { webhook } from './webhook.ts'

const text = z.string('text')
/** The registration of a handler checks its options. */
const options = z.record(z.string(), z.unknown(), 'an object').optional()

const fields = z.strictObject(
  {
    machines: z.record(z.string(), z.unknown(), 'an object, with a machine for each type').optional(),
    webhooks: z
      .array(
        z.strictObject({
          type: text,
          state: text,
          mode: z.enum(['safe', 'unsafe'], 'safe or unsafe'),
          url: text,
          options,
        }),
        'a list',
      )
      .optional(),
    schedules: z.array(z.looseObject({ name: text, url: text }), 'a list').optional(),
    deleted: z.array(z.strictObject({ type: text, url: text, options }), 'a list').optional(),
  },
  'an object with machines, webhooks, schedules and deleted',
)

/**
 * Reads machines and webhooks from JSON, in place of a module. The option `key` is the name of a field here.
 *
 * @throws ConfigError with all faults
 */
export function readJsonHandlers(json: string): HandlersModule {
  const parsed = fields.safeParse(parse(json))
  if (!parsed.success) {
    throw new ConfigError(
      parsed.error.issues.map((issue) => {
        const place = issue.path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('')
        const what =
          issue.code === 'unrecognized_keys' ? `there is no ${issue.keys.join(', ')}` : `expected ${issue.message}`
        return place === '' ? what : `${place.replace(/^\./, '')}: ${what}`
      }),
    )
  }
  const { machines = {}, webhooks = [], schedules = [], deleted = [] } = parsed.data
  const register = (control: Control) => {
    for (const { type, state, mode, url, options } of webhooks)
      control[mode](type, state, webhook(url), optionsOf(options))
    for (const { name, url, ...when } of schedules) control.schedule(name, when as never, webhook(url))
    for (const { type, url, options } of deleted) control.deleted(type, webhook(url), optionsOf(options))
  }
  return { machines: machines as Machines, register }
}

function optionsOf(given: Readonly<Record<string, unknown>> = {}): HandlerOptions {
  const { key: field, ...options } = given
  if (field === undefined) return options
  const key = typeof field === 'string' ? (doc: Doc) => doc[field] : field
  return { ...options, key } as HandlerOptions
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (thrown) {
    throw new ConfigError([`expected JSON: ${failureOf(thrown).reason}`])
  }
}
