import { inspect } from 'node:util'
import { z } from 'zod'
import { ConfigError } from '../core/errors.ts'
import { SHOWN } from '../core/failure.ts'
import { didYouMean } from '../core/nearest.ts'
import { lasting, LONGEST_MS, parseDuration, type Duration } from '../core/duration.ts'
import { isTimeZone, parseCron } from '../core/cron.ts'
import type { Deletion, DeletionHandler, DeletionOptions, Schedule, ScheduleHandler, ScheduleOptions } from './runs.ts'
import type { HandlerOptions, Registration, ResolvedOptions } from './types.ts'
import type { StoredDoc } from '../couch/documents.ts'

const ms = z
  .number('milliseconds')
  .finite('milliseconds')
  .positive('milliseconds')
  .max(LONGEST_MS, 'at most a hundred years, in milliseconds')
const count = z.int('a whole number of at least 1').positive('a whole number of at least 1')
const A_TIME = 'a time such as 90s, 30m or 24h'
const A_PRIORITY = 'a whole number from 0 to 9'
const A_CRON = "a cron expression, such as '0 6 * * *'"
const A_VERSION = 'a text of 1 to 100 characters'
const duration = z
  .string(A_TIME)
  .refine((text) => (parseDuration(text) ?? 0) > 0, A_TIME)
  .transform((text) => parseDuration(text)!)

/** Each option has one message: the text after "expected" in a fault. */
const handlerOptions = z.strictObject(
  {
    timeout: duration.prefault('5m' satisfies Duration),
    concurrency: count.prefault(32),
    globalConcurrency: count.optional(),
    key: z
      .custom<NonNullable<HandlerOptions['key']>>((key) => typeof key === 'function', 'a function of the document')
      .optional(),
    limit: z.strictObject({ count, per: duration }, "{ count, per }, such as { count: 600, per: '1m' }").optional(),
    attempts: count.prefault(20),
    backoff: z
      .strictObject({ baseMs: ms.prefault(1000), capMs: ms.prefault(4 * 3_600_000) }, '{ baseMs, capMs }')
      .prefault({}),
    onLost: z.enum(['park', 'retry'], "'park' or 'retry'").prefault('park'),
    priority: z.int(A_PRIORITY).min(0, A_PRIORITY).max(9, A_PRIORITY).prefault(5),
    since: z.enum(['beginning', 'now'], "'beginning' or 'now'").prefault('beginning'),
    shadow: z.boolean('true or false').prefault(false),
    version: z.string(A_VERSION).min(1, A_VERSION).max(100, A_VERSION).optional(),
  },
  'an object',
)

const scheduleOptions = handlerOptions
  .pick({ timeout: true, attempts: true, backoff: true, onLost: true, priority: true, version: true })
  .extend({
    cron: z.string(A_CRON),
    timeZone: z.string('the name of a time zone').prefault('UTC'),
    missed: z.enum(['once', 'skip'], "'once' or 'skip'").prefault('once'),
  })

const deletionOptions = handlerOptions.omit({ since: true, shadow: true, key: true })

/** Throws `ConfigError` with a fault for each invalid or unknown option. */
function parse<S extends z.ZodObject>(schema: S, given: unknown, subject: string): z.output<S> {
  const parsed = schema.safeParse(given)
  if (parsed.success) return parsed.data
  throw new ConfigError(
    parsed.error.issues.flatMap((issue) => faultsOf(issue, given, subject, Object.keys(schema.shape))),
  )
}

/** Checks that a handler is a function: JavaScript is not type-checked. Throws `ConfigError`. */
export function checkHandler(handler: unknown, subject: string): void {
  if (typeof handler !== 'function') {
    throw new ConfigError([`${subject}: expected a function, got ${inspect(handler, SHOWN)}`])
  }
}

/** Creates a schedule from its checked options, cron and time zone. Throws `ConfigError`. */
export function scheduleFrom(name: string, given: ScheduleOptions, handler: ScheduleHandler): Schedule {
  if (typeof name !== 'string' || !/^[\w.-]{1,100}$/.test(name)) {
    throw new ConfigError([
      `a schedule: expected a name of up to 100 letters, digits, '.', '-' and '_', got ${inspect(name, SHOWN)}`,
    ])
  }
  const subject = `the schedule ${name}`
  const { cron, timeZone, missed } = parse(scheduleOptions, given, subject)
  checkHandler(handler, subject)
  const { cron: _cron, timeZone: _timeZone, missed: _missed, ...options } = given
  const expected = parseCron(cron, timeZone)
  if (typeof expected !== 'string') return { name, cron, timeZone, missed, options, handler }
  const [field, got] = isTimeZone(timeZone) ? ['cron', cron] : ['timeZone', timeZone]
  throw new ConfigError([`${subject}: ${field}: expected ${expected}, got ${inspect(got, SHOWN)}`])
}

/** Creates a handler for deleted documents from its checked options. Throws `ConfigError`. */
export function deletionFrom(type: string, options: DeletionOptions, handler: DeletionHandler): Deletion {
  const subject = `the handler for deletions of ${type}`
  parse(deletionOptions, options, subject)
  checkHandler(handler, subject)
  return { type, options, handler }
}

/** Gives missing and undefined options their defaults. Throws `ConfigError` with a fault for each invalid option. */
export function withDefaults(given: HandlerOptions, subject: string): ResolvedOptions {
  const { timeout, limit, ...options } = parse(handlerOptions, given, subject)
  return { ...options, timeoutMs: timeout, ...(limit && { limit: { count: limit.count, perMs: limit.per } }) }
}

const PARTS: Readonly<Record<string, readonly string[]>> = { backoff: ['baseMs', 'capMs'], limit: ['count', 'per'] }

function faultsOf(issue: z.core.$ZodIssue, given: unknown, subject: string, names: readonly string[]): string[] {
  const at = issue.path.map(String)
  if (issue.code !== 'unrecognized_keys') {
    const got = at.reduce((value, name) => (value as Record<string, unknown>)[name], given)
    return [`${subject}: ${at.join('.') || 'options'}: expected ${issue.message}, got ${inspect(got, SHOWN)}`]
  }
  const known = PARTS[at[0] ?? ''] ?? names
  return issue.keys.map(
    (key) =>
      `${subject}: there is no option ${[...at, key].join('.')}${didYouMean(key, known)}; there are ${known.join(', ')}`,
  )
}

/** The options of a handler in one line, for users. */
export function optionsLine({ options }: Pick<Registration, 'options'>): string {
  const { timeoutMs, attempts, concurrency, globalConcurrency, key, limit, onLost, priority, since, shadow, version } =
    options
  return [
    ...(shadow ? ['shadow: its effects are withheld'] : []),
    `timeout ${lasting(timeoutMs)}`,
    attempts === Number.MAX_SAFE_INTEGER ? 'tried until done' : `${attempts} attempts`,
    `concurrency ${concurrency}`,
    ...(globalConcurrency === undefined ? [] : [`${globalConcurrency} in all workers`]),
    ...(key ? ['one at a time for each key'] : []),
    ...(limit ? [`at most ${limit.count} in ${lasting(limit.perMs)}`] : []),
    ...(onLost === 'retry' ? ['retried when lost'] : []),
    ...(priority === handlerDefaults.priority ? [] : [`priority ${priority}`]),
    ...(since === 'now' ? ['since now'] : []),
    ...(version === undefined ? [] : [`version ${version}`]),
  ].join(', ')
}

/** A schedule in one line, for users. */
export const scheduleLine = ({ name, cron, timeZone, missed, options }: Schedule): string =>
  [
    `schedule ${name}`,
    `${cron} (${timeZone})`,
    `missed: ${missed}`,
    optionsLine({ options: withDefaults(options, name) }),
  ].join('  ')

/** For work that must succeed in the end: it is never given up. It may wait for an index, hence the long timeout. */
export const UNTIL_DONE: HandlerOptions = {
  timeout: '1h',
  attempts: Number.MAX_SAFE_INTEGER,
  backoff: { baseMs: 1000, capMs: 300_000 },
}

export const handlerDefaults: ResolvedOptions = withDefaults({}, 'defaults')

/** A handler that deletes a document. The tombstone keeps the type and the state, and no other content. */
export const forget = <State extends string>({ _id, _rev, type, state }: StoredDoc & { readonly state: State }) =>
  Promise.resolve({ _id, _rev, type, state, _deleted: true as const })
