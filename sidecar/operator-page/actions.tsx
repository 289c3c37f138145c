import type { HandlerSetting } from '../../ddocs/lib/live-settings.ts'
import { isAmong } from '../core/glob.ts'
import { isoTime, type Clock } from '../core/clock.ts'
import type { Couch } from '../couch/client.ts'
import { isOfOneDatabase, unreadInWords } from '../couch/couch-errors.ts'
import type { CountedDatabase } from '../databases/stuck.ts'
import { mailAgainBy, revokeBy } from '../devices/operate.ts'
import {
  BY_DEFAULT,
  changeHandlers,
  concurrencyFrom,
  limitFrom,
  limitInWords,
  unknownHandlers,
  type HandlerChange,
} from '../databases/change-handlers.ts'
import { handlerSettingsIn, settingInWords } from '../databases/handler-settings.ts'
import {
  actOnAll,
  actOnOne,
  discard,
  retryBy,
  undoDiscard,
  type Action,
  type ActionResult,
} from '../docstate/operator/actions.ts'
import { countsFor, type Filter } from '../docstate/operator/find.ts'
import { countDocuments } from '../docstate/operator/count-documents.ts'
import { STUCK } from '../../ddocs/lib/stuck.ts'
import { HttpError } from '../http/http-errors.ts'
import { isStatus, type Asked } from './documents.tsx'
import { documentPath, grouped, Hidden, Layout, listPath, Text, type Viewer } from './layout.tsx'

export const VERBS = ['retry', 'discard', 'undo', 'pause', 'resume', 'set', 'mail', 'revoke'] as const
export type Verb = (typeof VERBS)[number]

/** What is to be done, with what. */
export type Order =
  | { readonly verb: 'retry' | 'discard' | 'undo'; readonly db: string; readonly id: string }
  | { readonly verb: 'retry' | 'discard'; readonly asked: Asked }
  /** `of`: the discard that is taken back. */
  | { readonly verb: 'undo'; readonly asked: Asked; readonly of: { readonly at: string; readonly by: string } }
  /** `id`: of a device. */
  | { readonly verb: 'mail' | 'revoke'; readonly id: string; readonly address: string }
  | { readonly verb: 'pause' | 'resume' | 'set'; readonly handler: string; readonly change: HandlerChange }

/** Of the fields of a form or an address. Throws `HttpError` where they say nothing that can be done. */
export function orderFrom(fields: Readonly<Record<string, string | undefined>>): Order {
  const { verb, handler, id, db, type, state, status, code, address, at, by } = fields
  if ((verb === 'mail' || verb === 'revoke') && id && address) return { verb, id, address }
  if ((verb === 'pause' || verb === 'resume') && handler)
    return { verb, handler, change: { paused: verb === 'pause' || null } }
  if (verb === 'set' && handler) return { verb, handler, change: changeFrom(fields) }
  if (verb !== 'retry' && verb !== 'discard' && verb !== 'undo') throw bad(`expected one of ${VERBS.join(', ')}`)
  if (id && db) return { verb, db, id }
  const asked = {
    db: db || undefined,
    type: type || undefined,
    state: state || undefined,
    status: status || undefined,
    code: code || undefined,
  }
  if (verb === 'undo') {
    if (!at || !by) throw bad('expected a document, or when and by whom the documents were discarded')
    return { verb, asked: { ...asked, status: 'discarded', code: undefined }, of: { at, by } } // a discard has its own code
  }
  if (Object.values(asked).every((one) => one === undefined)) throw bad('expected a document, or a filter')
  if (asked.status !== undefined && !isStatus(asked.status)) throw bad(`there is no status ${asked.status}`)
  if (verb === 'discard' && !STUCK.includes(asked.status ?? 'failed') && !(asked.type && asked.state))
    throw bad(`expected a type and a state: most documents stand as ${asked.status} for good`)
  return { verb, asked }
}

function changeFrom({ concurrency = '', limit = '' }: Readonly<Record<string, string | undefined>>): HandlerChange {
  const read = { concurrency: concurrencyFrom(concurrency.trim()), limit: limitFrom(limit.trim()) }
  for (const value of Object.values(read)) if (typeof value === 'string') throw bad(value)
  return read as HandlerChange
}

const bad = (reason: string) => new HttpError(400, 'bad_request', `This cannot be done: ${reason}.`)

export const filterOf = ({ type, state, status, code }: Asked): Filter => ({
  ...{ type, state, code },
  ...(isStatus(status) && { statuses: [status] }),
})

/** Whether a database is meant, of those that the sidecar looks after. */
const isMeant = ({ db }: Asked, name: string): boolean => db === undefined || isAmong(name, [db])

/** The databases that are meant, of those that are counted. */
export const meantBy = (asked: Asked, databases: readonly CountedDatabase[]): readonly CountedDatabase[] =>
  databases.filter(({ name }) => isMeant(asked, name))

/** How many documents a filter means, of discarded ones at most: with a state or a code some of them have another. */
export const mostMeant = (asked: Asked, databases: readonly CountedDatabase[]): number =>
  meantBy(asked, databases)
    .flatMap(({ counted }) => (counted ? countsFor(counted, filterOf(asked)) : []))
    .reduce((sum, { count }) => sum + count, 0)

export interface Deed {
  readonly couch: Couch
  /** The control database. */
  readonly controlDb: string
  /** Of all databases that the sidecar looks after; only an order for many documents needs them. */
  readonly names: readonly string[]
  readonly by: string
  readonly clock: Clock
  readonly signal: AbortSignal
}

export interface Sums {
  done: number
  /** Were changed by others meanwhile, and are left as they are. */
  changed: number
  refused: number
  /** The first refusal, or why nothing was done. */
  why: string | undefined
  /** With which it is undone; undefined where nothing was done, or nothing takes it back. */
  undo: Readonly<Record<string, string | undefined>> | undefined
}

export const noSums = (): Sums => ({ done: 0, changed: 0, refused: 0, why: undefined, undo: undefined })

/** Does it, and counts in `sums` how far it is. Throws `CouchError`. */
export async function carryOut(order: Order, deed: Deed, sums: Sums = noSums()): Promise<Sums> {
  const { couch, controlDb, names, by, clock, signal } = deed
  if ('handler' in order) {
    const [fault] =
      order.verb === 'resume' ? [] : ((await unknownHandlers(couch.db(controlDb), [order.handler], signal)) ?? [])
    if (fault !== undefined) return { ...sums, why: `${fault}.` }
    const control = couch.db(controlDb)
    const before = (await handlerSettingsIn(control, signal))[order.handler]
    await changeHandlers(control, [order.handler], order.change, { by, signal })
    return { ...sums, done: 1, undo: undoOfChange(order, before) }
  }
  if ('address' in order) {
    const action = (order.verb === 'mail' ? mailAgainBy : revokeBy)(by, clock.now())
    const { kind } = await actOnOne(couch.db(controlDb), order.id, action, signal)
    if (kind === 'done') return { ...sums, done: 1 }
    return {
      ...sums,
      why: kind === 'changed' ? 'It changed meanwhile.' : 'It is not there any more, or in another state.',
    }
  }
  const now = clock.now()
  const action = actionOf(order, by, now)
  const add = (result: ActionResult) => {
    if (result.kind === 'done' || result.kind === 'changed' || result.kind === 'refused') sums[result.kind] += 1
    if (result.kind === 'refused') sums.why ??= `${result.id}: ${result.code}: ${result.reason}`
    if (result.kind === 'nothing-to-do') sums.why ??= `${result.id} neither failed nor waits.`
    if (result.kind === 'not-found') sums.why ??= `There is no document ${result.id}.`
  }
  if ('id' in order) add(await actOnOne(couch.db(order.db), order.id, action, signal))
  else {
    if (order.verb === 'discard') sums.undo = { verb: 'undo', ...order.asked, status: undefined, at: isoTime(now), by }
    const filter = filterOf(order.asked)
    for (const name of names.filter((name) => isMeant(order.asked, name))) {
      try {
        const counted = await countDocuments(couch.db(name), signal) // what a page was shown may be old
        for await (const results of actOnAll({ database: couch.db(name), counted, filter, now, signal, action }))
          results.forEach(add)
      } catch (thrown) {
        if (!isOfOneDatabase(thrown)) throw thrown
        if (thrown.code !== 'not_found') sums.why ??= unreadInWords(name, thrown) // it was deleted, or has no documents of ours
      }
    }
  }
  if ('id' in order && order.verb === 'discard') sums.undo = { verb: 'undo', db: order.db, id: order.id }
  return sums
}

type DocumentOrder = Extract<Order, { readonly verb: 'retry' | 'discard' | 'undo' }>

function actionOf(order: DocumentOrder, by: string, now: number): Action {
  if (order.verb === 'retry') return retryBy(by, now)
  if (order.verb === 'undo') return undoDiscard({ by, now, of: 'of' in order ? order.of : undefined })
  return discard({ by, now, among: 'asked' in order && isStatus(order.asked.status) ? [order.asked.status] : STUCK })
}

type HandlerOrder = Extract<Order, { readonly handler: string }>

function undoOfChange({ verb, handler }: HandlerOrder, before: HandlerSetting | undefined): Sums['undo'] {
  if (verb !== 'set') return { verb: verb === 'pause' ? 'resume' : 'pause', handler }
  return { verb, handler, concurrency: String(before?.concurrency ?? BY_DEFAULT), limit: limitInWords(before) }
}

interface AskProps {
  readonly viewer: Viewer
  readonly order: Order
  readonly fields: Readonly<Record<string, string | undefined>>
  /** How many documents at most; undefined for one. */
  readonly most: number | undefined
  /** Whether all databases are counted. */
  readonly isWhole: boolean
}

export const TITLES = {
  retry: 'Retry',
  discard: 'Discard',
  undo: 'Undo the discard',
  pause: 'Pause',
  resume: 'Resume',
  set: 'Set',
  mail: 'Send the mail again',
  revoke: 'Revoke',
} as const

/** Where the verb itself is not what a person says. */
const YES: Readonly<Partial<Record<Verb, string>>> = { mail: 'send it', undo: 'undo it' }

const CONSEQUENCES: Readonly<Record<Verb, string>> = {
  retry:
    'Each goes back to its handler, which runs at once, with the same ctx.key as before: an effect that has happened may happen again where the receiver does not know the key.',
  discard: 'Each is in error afterwards, marked as discarded, and is not handled any more. This can be undone.',
  undo: 'Each stands as it stood before it was discarded: what was to be tried again is, and what waited for a person does.',
  pause: 'What runs goes on to its end, nothing else begins, on all workers. Resume takes that back.',
  resume: 'It takes its documents again, on all workers, at once.',
  mail: 'The owner of the device gets another mail, with another link and code.',
  revoke:
    'The device has no access any more, and its user is deleted. Nothing takes that back: it has to register anew.',
  set: 'It holds within a second on all workers, and over restarts. What runs goes on to its end.',
}

/** Says what would be done before it is. */
export const Ask = ({ viewer, order, fields, most, isWhole }: AskProps) => (
  <Layout title={`${TITLES[order.verb]}?`} viewer={viewer}>
    <p>
      <Text of={subjectOf(order, most)} />
    </p>
    {!isWhole && <p class="bad">Not all databases are counted yet: it may be more.</p>}
    <p>{CONSEQUENCES[order.verb]}</p>
    <form method="post" action="/act">
      <Hidden values={fields} />
      <button>Yes, {YES[order.verb] ?? order.verb}</button> <a href={backFrom(order)}>No, go back</a>
    </form>
  </Layout>
)

export function subjectOf(order: Order, most: number | undefined): string {
  if ('handler' in order)
    return order.verb === 'set'
      ? `The handler of ${order.handler}, in all databases: ${settingInWords(withoutNull(order.change))}.`
      : `The handler of ${order.handler}, in all databases.`
  if ('address' in order) return `The device ${order.id} of ${order.address}.`
  if ('id' in order) return `The document ${order.id} in ${order.db}.`
  const documents = `${grouped(most ?? 0)} ${most === 1 ? 'document' : 'documents'}`
  const filter = Object.entries(order.asked).flatMap(([key, value]) => (value === undefined ? [] : [`${key} ${value}`]))
  return `${order.asked.status === 'discarded' ? 'Up to ' : ''}${documents}: ${filter.join(', ')}.`
}

const withoutNull = (change: HandlerChange) =>
  Object.fromEntries(Object.entries(change).filter(([, value]) => value !== null)) as HandlerSetting

export const backFrom = (order: Order): string =>
  'handler' in order
    ? '/handlers'
    : 'address' in order
      ? `/person?${new URLSearchParams({ address: order.address }).toString()}`
      : 'id' in order
        ? documentPath(order.db, order.id)
        : listPath({ ...order.asked })
