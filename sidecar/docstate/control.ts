import type { HandledState, Machines, NextState } from '../../ddocs/machine.ts'
import { placeIn } from '../core/call-site.ts'
import { ConfigError } from '../core/errors.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import { handlerFault, typeFault } from './check-machines.ts'
import { checkHandler, deletionFrom, scheduleFrom, withDefaults } from './handler-options.ts'
import type { Resolver } from './conflicts/merge.ts'
import type { Deletion, DeletionHandler, DeletionOptions, Schedule, ScheduleHandler, ScheduleOptions } from './runs.ts'
import type { Context, Handler, HandlerOptions, Mode, Registration } from './types.ts'

/** Names of a type's states with a handler of this mode; any string without machines. */
type StateOf<M extends Machines, T extends keyof M, Md extends Mode> = string extends keyof M
  ? string
  : HandledState<M, T, Md>
type Next<M extends Machines, T extends keyof M, S> = string extends keyof M
  ? string
  : S extends keyof M[T]
    ? NextState<M, T, S>
    : never

/** A handler with exact types: gets a document of its type and state, returns the next document or nothing. */
export type TypedHandler<M extends Machines, T extends keyof M, S, D extends object> = (
  doc: D & StoredDoc & { readonly type: T; readonly state: S },
  ctx: Context,
) => Promise<(object & { readonly state: Next<M, T, S> }) | void>

/**
 * Registers handlers by `doc.type` and `doc.state`.
 *
 * `safe`: the handler may run twice by accident. It runs without a claim. A save that loses a race is dropped silently.
 * `unsafe`: racing workers must not run the handler twice. The worker claims the document first.
 *
 * A handler returns the next document, or saves it with `ctx.save` and returns nothing. A handler that throws is
 * retried later. After `attempts` attempts the document goes to `state: "error"`; after `Reject` at once.
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
   * Registers a resolver, which merges the fields of conflicting revisions of a type. It must be pure: any worker may
   * call it again. It returns a document of the type with a state. The sidecar merges `docstate` and attachments.
   *
   * @example
   * control.resolve('order', ({ ours, theirs }) => ({ ...ours, note: theirs.note ?? ours.note }))
   */
  resolve<T extends keyof M & string>(type: T, resolver: Resolver): void
  /**
   * Runs a handler at certain times: each due time once, by one worker. A run is a document of the control database. It
   * is claimed, retried and shown like any other, and kept for a week. Runs of a schedule are sequential. `ctx.find`,
   * `ctx.put` and `ctx.save` use the control database.
   *
   * @example
   * control.schedule('nightly-report', { cron: '0 6 * * *', timeZone: 'Europe/Berlin' }, async ({ due_at }, ctx) => {
   *   await ctx.mail.send({ to: 'team@example.com', subject: 'Report', text: `It is ${due_at}.` })
   * })
   */
  schedule(name: string, options: ScheduleOptions, handler: ScheduleHandler): void
  /**
   * Runs a handler for each deleted document of a type, in the databases of the other handlers. It gets the fields that
   * the deletion kept. So delete by a write with `_deleted: true` and the type: CouchDB's `DELETE` keeps nothing. Each
   * run is a document of the control database: claimed, retried and shown like any other. `ctx.database`, `ctx.find`
   * and `ctx.put` use the database of the deleted document.
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
  /** Handlers whose effects are withheld. */
  readonly shadows: readonly Registration[]
  readonly resolvers: ReadonlyMap<string, Resolver>
  readonly schedules: readonly Schedule[]
  readonly deletions: readonly Deletion[]
}

/**
 * Creates an empty dispatch table for these machines.
 *
 * @param onFault called for each fault: two handlers for one state, an undeclared handler, an invalid option. Default:
 * throws the fault.
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
        const subject = `the ${mode} handler for ${type} in state ${state}`
        checkHandler(handler, subject)
        const options = withDefaults(given, subject)
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
        throw new ConfigError([`two schedules named ${name}: expected one`])
      }
      schedules.push(scheduleFrom(name, options, handler))
    } catch (thrown) {
      report(thrown)
    }
  }

  function deleted(type: string, handler: DeletionHandler, options: DeletionOptions = {}): void {
    try {
      if (deletions.some((known) => known.type === type)) {
        throw new ConfigError([`two handlers for deletions of ${type}: expected one`])
      }
      refuse(typeFault(`handler for deletions of ${type}`, type, machines))
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
