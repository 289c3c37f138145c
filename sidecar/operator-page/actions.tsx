import type { HandlerSetting } from '../../ddocs/lib/live-settings.ts'
import { isoTime, type Clock } from '../core/clock.ts'
import type { Couch } from '../couch/client.ts'
import { isOfOneDatabase, unreadInWords } from '../couch/couch-errors.ts'
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
import { countDocuments } from '../docstate/operator/count-documents.ts'
import { STUCK } from '../../ddocs/lib/stuck.ts'
import { HttpError } from '../http/http-errors.ts'
import { documentFilterFrom, filterOf, isUpperBound, selectsDatabase, type DocumentFilter } from './document-filter.ts'
import { documentPath, grouped, Hidden, Layout, listPath, Text, type Viewer } from './layout.tsx'

export const VERBS = ['retry', 'discard', 'undo', 'pause', 'resume', 'set', 'mail', 'revoke'] as const
export type Verb = (typeof VERBS)[number]

/** An action and its subject. */
export type Order =
  | { readonly verb: 'retry' | 'discard' | 'undo'; readonly db: string; readonly id: string }
  | { readonly verb: 'retry' | 'discard'; readonly filter: DocumentFilter }
  /** `of`: the discard to undo. */
  | {
      readonly verb: 'undo'
      readonly filter: DocumentFilter
      readonly of: { readonly at: string; readonly by: string }
    }
  /** `id`: the id of a device. */
  | { readonly verb: 'mail' | 'revoke'; readonly id: string; readonly address: string }
  | { readonly verb: 'pause' | 'resume' | 'set'; readonly handler: string; readonly change: HandlerChange }

/** Reads an order from the fields of a form or an address. Throws `HttpError` if they make no valid order. */
export function orderFrom(fields: Readonly<Record<string, string | undefined>>): Order {
  const { verb, handler, id, db, address, at, by } = fields
  if ((verb === 'mail' || verb === 'revoke') && id && address) return { verb, id, address }
  if ((verb === 'pause' || verb === 'resume') && handler)
    return { verb, handler, change: { paused: verb === 'pause' || null } }
  if (verb === 'set' && handler) return { verb, handler, change: changeFrom(fields) }
  if (verb !== 'retry' && verb !== 'discard' && verb !== 'undo') throw bad(`expected one of ${VERBS.join(', ')}`)
  if (id && db) return { verb, db, id }
  const filter = { ...documentFilterFrom(fields), id: undefined, after: undefined }
  if (verb === 'undo') {
    if (!at || !by) throw bad('expected a document, or when and by whom the documents were discarded')
    // A discard changes the code and the age.
    return { verb, filter: { ...filter, status: 'discarded', code: undefined, older: undefined }, of: { at, by } }
  }
  if (Object.values(filter).every((one) => one === undefined)) throw bad('expected a document, or a filter')
  if (verb === 'discard' && !STUCK.includes(filter.status ?? 'failed') && !(filter.type && filter.state))
    throw bad(`expected a type and a state: most documents stand as ${filter.status} for good`)
  return { verb, filter }
}

function changeFrom({ concurrency = '', limit = '' }: Readonly<Record<string, string | undefined>>): HandlerChange {
  const read = { concurrency: concurrencyFrom(concurrency.trim()), limit: limitFrom(limit.trim()) }
  for (const value of Object.values(read)) if (typeof value === 'string') throw bad(value)
  return read as HandlerChange
}

const bad = (reason: string) => new HttpError(400, 'bad_request', `This cannot be done: ${reason}.`)

export interface OrderContext {
  readonly couch: Couch
  /** The control database. */
  readonly controlDb: string
  /** All databases of the sidecar; only an order for many documents needs them. */
  readonly names: readonly string[]
  readonly by: string
  readonly clock: Clock
  readonly signal: AbortSignal
}

export interface Sums {
  done: number
  /** Documents that others changed in the meantime; they stay as they are. */
  changed: number
  refused: number
  /** First refusal, or why nothing was done. */
  why: string | undefined
  /** Fields of the order that undoes this one. Undefined if nothing was done, or no undo exists. */
  undo: Readonly<Record<string, string | undefined>> | undefined
}

export const noSums = (): Sums => ({ done: 0, changed: 0, refused: 0, why: undefined, undo: undefined })

/** Carries out the order, and counts the progress in `sums`. Throws `CouchError`. */
export async function carryOut(order: Order, context: OrderContext, sums: Sums = noSums()): Promise<Sums> {
  const { couch, controlDb, names, by, clock, signal } = context
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
      why:
        kind === 'changed'
          ? 'The device changed in the meantime.'
          : 'The device does not exist any more, or is in another state.',
    }
  }
  const now = clock.now()
  const action = actionOf(order, by, now)
  const add = (result: ActionResult) => {
    if (result.kind === 'done' || result.kind === 'changed' || result.kind === 'refused') sums[result.kind] += 1
    if (result.kind === 'refused') sums.why ??= `${result.id}: ${result.code}: ${result.reason}`
    if (result.kind === 'nothing-to-do') sums.why ??= `${result.id} has not failed and does not wait.`
    if (result.kind === 'not-found') sums.why ??= `There is no document ${result.id}.`
  }
  if ('id' in order) add(await actOnOne(couch.db(order.db), order.id, action, signal))
  else {
    if (order.verb === 'discard') sums.undo = { verb: 'undo', ...order.filter, status: undefined, at: isoTime(now), by }
    const filter = filterOf(order.filter)
    for (const name of names.filter((name) => selectsDatabase(order.filter, name))) {
      try {
        const counted = await countDocuments(couch.db(name), signal) // counts of the page may be old
        for await (const results of actOnAll({ database: couch.db(name), counted, filter, now, signal, action }))
          results.forEach(add)
      } catch (thrown) {
        if (!isOfOneDatabase(thrown)) throw thrown
        // `not_found`: the database is deleted, or not deployed.
        if (thrown.code !== 'not_found') sums.why ??= unreadInWords(name, thrown)
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
  return discard({ by, now, among: 'filter' in order && order.filter.status ? [order.filter.status] : STUCK })
}

type HandlerOrder = Extract<Order, { readonly handler: string }>

function undoOfChange({ verb, handler }: HandlerOrder, before: HandlerSetting | undefined): Sums['undo'] {
  if (verb !== 'set') return { verb: verb === 'pause' ? 'resume' : 'pause', handler }
  return { verb, handler, concurrency: String(before?.concurrency ?? BY_DEFAULT), limit: limitInWords(before) }
}

interface ConfirmProps {
  readonly viewer: Viewer
  readonly order: Order
  readonly fields: Readonly<Record<string, string | undefined>>
  /** Maximum number of documents; undefined for one. */
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

/** Words on the button, if the verb alone does not fit. */
const YES: Readonly<Partial<Record<Verb, string>>> = { mail: 'send it', undo: 'undo it' }

const CONSEQUENCES: Readonly<Record<Verb, string>> = {
  retry:
    'The handler runs again at once for each document, with the same ctx.key. If an effect has already happened, it may happen a second time, unless the receiver recognises the key.',
  discard: 'Each document stays in error, is marked as discarded, and is not handled again. You can undo this.',
  undo: 'Each document gets back the status that it had before it was discarded.',
  pause: 'Running attempts finish; no worker starts another one. Resume undoes this.',
  resume: 'All workers start to handle its documents at once.',
  mail: 'The owner of the device gets a new mail, with a new link and code.',
  revoke:
    'The device loses its access, and its CouchDB user is deleted. You cannot undo this: the device must register again.',
  set: 'The setting takes effect on all workers within a second and survives restarts. Running attempts finish.',
}

/** The confirmation page: shows how many documents an order selects, and the consequences. */
export const Confirm = ({ viewer, order, fields, most, isWhole }: ConfirmProps) => (
  <Layout title={`${TITLES[order.verb]}?`} viewer={viewer}>
    <p>
      <Text of={subjectOf(order, most)} />
    </p>
    {!isWhole && <p class="bad">Not all databases are counted yet: there may be more documents.</p>}
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
  const filter = Object.entries(order.filter).flatMap(([key, value]) =>
    value === undefined ? [] : [`${key} ${value}`],
  )
  return `${isUpperBound(order.filter) ? 'Up to ' : ''}${documents}: ${filter.join(', ')}.`
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
        : listPath({ ...order.filter })
