import type { HandledState, Machines, NextState } from '../../ddocs/machine.ts'
import { placeIn } from '../core/call-site.ts'
import { ConfigError } from '../core/errors.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import { handlerFault, typeFault } from './check-machines.ts'
import { checkHandler, deletionFrom, scheduleFrom, withDefaults } from './handler-options.ts'
import type { Resolver } from './conflicts/merge.ts'
import type { Deletion, DeletionHandler, DeletionOptions, Schedule, ScheduleHandler, ScheduleOptions } from './runs.ts'
import type { Context, Handler, HandlerOptions, Mode, Registration } from './types.ts'

/** A state's name, as far as the machines are known: any string where nothing was declared. */
type StateOf<M extends Machines, T extends keyof M, Md extends Mode> = string extends keyof M
  ? string
  : HandledState<M, T, Md>
type Next<M extends Machines, T extends keyof M, S> = string extends keyof M
  ? string
  : S extends keyof M[T]
    ? NextState<M, T, S>
    : never

/** A handler as it is written: gets a document of its type and state, returns the next one or nothing. */
export type TypedHandler<M extends Machines, T extends keyof M, S, D extends object> = (
  doc: D & StoredDoc & { readonly type: T; readonly state: S },
  ctx: Context,
) => Promise<(object & { readonly state: Next<M, T, S> }) | void>

/**
 * Where handlers are registered, by `doc.type` and `doc.state`.
 *
 * `safe`: may run twice by accident; runs without a claim; a lost save race is dropped quietly.
 * `unsafe`: must not be run twice by racing workers; the worker first wins the document.
 *
 * A handler returns the next document, or saves it itself with `ctx.save` and returns nothing. Throwing tries again
 * later, and after `attempts` tries goes to `state: "error"`; throwing `Reject` goes there at once.
 *
 * @example
 * control.unsafe('order', 'paid', async (order: Order, ctx) => {
 *   await ctx.mail.send({ to: order.email, subject: 'Your invoice', text: invoiceOf(order) })
 *   return { ...order, state: 'invoiced' }
 * })
 */
export interface Control<M extends Machines = Machines> {
  safe<T extends keyof M & string, S extends StateOf<M, T, 'safe'>, D extends object = Doc>(
    type: T,
    state: S,
    handler: TypedHandler<M, T, S, D>,
    options?: Omit<HandlerOptions<NoInfer<D>>, 'onLost'>,
  ): void
  unsafe<T extends keyof M & string, S extends StateOf<M, T, 'unsafe'>, D extends object = Doc>(
    type: T,
    state: S,
    handler: TypedHandler<M, T, S, D>,
    options?: HandlerOptions<NoInfer<D>>,
  ): void
  /**
   * How the fields of conflicting revisions of a type are merged. Pure: it may be called again, by any worker. Returns a
   * document of the type with a state; `docstate` and attachments are seen to.
   *
   * @example
   * control.resolve('order', ({ ours, theirs }) => ({ ...ours, note: theirs.note ?? ours.note }))
   */
  resolve<T extends keyof M & string>(type: T, resolver: Resolver): void
  /**
   * Runs a handler at certain times: each due time once, by one worker. A run is a document of the control database, so it is
   * claimed, tried again and shown like any other, and kept for a week; runs of a schedule come one after the other. `ctx.find`,
   * `ctx.put` and `ctx.save` are those of the control database.
   *
   * @example
   * control.schedule('nightly-report', { cron: '0 6 * * *', timeZone: 'Europe/Berlin' }, async ({ due_at }, ctx) => {
   *   await ctx.mail.send({ to: 'team@example.com', subject: 'Report', text: `It is ${due_at}.` })
   * })
   */
  schedule(name: string, options: ScheduleOptions, handler: ScheduleHandler): void
  /**
   * Runs a handler for each document of a type that is deleted, in the databases of the other handlers. It gets what the deletion kept: write
   * the document with `_deleted: true` and its type, for CouchDB's `DELETE` keeps nothing. Each run is a document of the control database,
   * claimed, tried again and shown like any other; `ctx.database`, `ctx.find` and `ctx.put` are those of the database where it was deleted.
   *
   * @example
   * control.deleted('photo', async (photo, ctx) => {
   *   await storage.remove(photo.file, { signal: ctx.signal })
   * })
   */
  deleted<T extends keyof M & string, D extends object = Doc>(
    type: T,
    handler: DeletionHandler<D>,
    options?: DeletionOptions,
  ): void
  readonly machines: M
  readonly registrations: readonly Registration[]
  /** Those whose effects are withheld. */
  readonly shadows: readonly Registration[]
  readonly resolvers: ReadonlyMap<string, Resolver>
  readonly schedules: readonly Schedule[]
  readonly deletions: readonly Deletion[]
}

/**
 * An empty dispatch table for these machines.
 *
 * @param onFault called with what does not fit: two handlers for one state, one that the machines do not declare, an
 * option that is none. By default it is thrown.
 */
export function createControl<const M extends Machines = Machines>(
  machines: M,
  onFault: (fault: ConfigError) => void = (fault) => {
    throw fault
  },
): Control<M> {
  const [registrations, shadows]: [Registration[], Registration[]] = [[], []]
  const resolvers = new Map<string, Resolver>()
  const schedules: Schedule[] = []
  const deletions: Deletion[] = []

  const register =
    (mode: Mode) =>
    (type: string, state: string, handler: unknown, given: HandlerOptions = {}) => {
      try {
        const whose = `the ${mode} handler for ${type} in state ${state}`
        checkHandler(handler, whose)
        const options = withDefaults(given, whose)
        const [all, handlers] = options.shadow ? [shadows, 'shadow handlers'] : [registrations, 'handlers']
        if (all.some((known) => known.type === type && known.state === state)) {
          throw new ConfigError([`two ${handlers} for ${type} in state ${state}: expected one`])
        }
        refuse(handlerFault({ type, state, mode }, machines))
        all.push({ type, state, mode, handler: handler as Handler, options })
      } catch (thrown) {
        report(thrown)
      }
    }

  function resolve(type: string, resolver: Resolver): void {
    try {
      if (resolvers.has(type)) throw new ConfigError([`two resolvers for ${type}: expected one`])
      refuse(typeFault(`resolver for ${type}`, type, machines))
      resolvers.set(type, resolver)
    } catch (thrown) {
      report(thrown)
    }
  }

  function schedule(name: string, options: ScheduleOptions, handler: ScheduleHandler): void {
    try {
      if (schedules.some((known) => known.name === name)) {
        throw new ConfigError([`two schedules of the name ${name}: expected one`])
      }
      schedules.push(scheduleFrom(name, options, handler))
    } catch (thrown) {
      report(thrown)
    }
  }

  function deleted(type: string, handler: DeletionHandler, options: DeletionOptions = {}): void {
    try {
      if (deletions.some((known) => known.type === type)) {
        throw new ConfigError([`two handlers for what is deleted of ${type}: expected one`])
      }
      refuse(typeFault(`handler for what is deleted of ${type}`, type, machines))
      deletions.push(deletionFrom(type, options, handler))
    } catch (thrown) {
      report(thrown)
    }
  }

  function report(thrown: unknown): void {
    if (!(thrown instanceof ConfigError)) throw thrown
    const place = placeIn(new Error().stack)
    onFault(place === undefined ? thrown : new ConfigError(thrown.faults.map((fault) => `${fault} (${place})`)))
  }

  const handlers = { safe: register('safe'), unsafe: register('unsafe') }
  return {
    ...handlers,
    resolve,
    schedule,
    deleted,
    deletions,
    machines,
    registrations,
    shadows,
    resolvers,
    schedules,
  } as Control<M>
}

function refuse(fault: string | undefined): void {
  if (fault !== undefined) throw new ConfigError([fault])
}
