import type { Machines, State, Timeout } from '../../../ddocs/machine.ts'
import { settingsId, type HandlerSettings } from '../../../ddocs/lib/live-settings.ts'
import { isoTime, type Clock } from '../../core/clock.ts'
import { lasting } from '../../core/duration.ts'
import { SidecarError } from '../../core/errors.ts'
import { shellWord } from '../../core/shell-word.ts'
import type { Database } from '../../couch/database.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { createClassify, docstateOf, type DispatchTable } from '../classify.ts'
import { isOlder, isSinceNow } from '../finding/since.ts'
import { failureOf } from '../../core/failure.ts'
import { handlerDefaults } from '../handler-options.ts'
import { keyOf } from '../keys.ts'
import { failedTries, stepsDone, timesLost } from '../attempt.ts'
import type { Registration } from '../types.ts'
import type { TypeAndState } from '../../workers/partitioning.ts'

export interface ExplainOptions {
  readonly database: Database
  /** What a sidecar with these settings runs there. */
  readonly table: DispatchTable
  readonly clock: Clock
  readonly id: string
  /** Whether these settings serve the database. */
  readonly served: boolean
  /** The machines that guard the database. */
  readonly guarded: Machines
  /** Why a sidecar does not start this handler there, as sentences. */
  readonly faultsOf: (registration: Registration) => readonly string[]
  /** The control database. */
  readonly control: Database
  /** What is set of handlers in place of their options. */
  readonly settings: HandlerSettings
  /** Whether some worker is registered that has a handler for it in this database. Default yes. */
  readonly hasWorker?: (pair: TypeAndState) => Promise<boolean>
  readonly signal?: AbortSignal
}

/**
 * Tells about one document, in sentences for people: which handler takes it, who holds it, what happened, and what
 * happens next and when. Asks no worker. Throws `SidecarError` (code `not-found`), `CouchError`.
 */
export async function explain(options: ExplainOptions): Promise<string[]> {
  const { database, table, id, served, signal } = options
  const doc = await database.find(id, { conflicts: true }, { signal })
  if (!doc) {
    await database.info({ signal }) // or there is no such database
    throw new SidecarError('not-found', `the database ${database.name} has no document "${id}"`)
  }
  const { type, state } = doc
  if (typeof type !== 'string' || typeof state !== 'string') {
    return [`${id} has no type and state that are strings, so no handler can take it.`]
  }
  const handler = table.registrations.find((entry) => entry.type === type && entry.state === state)
  const faults = handler ? options.faultsOf(handler) : []
  const runs = { ...table, registrations: faults.length > 0 ? [] : table.registrations }
  const lines = [
    `${id} is of type ${type}, in state ${state}, revision ${doc._rev}.`,
    served
      ? `A sidecar with these settings serves ${database.name}.`
      : `No sidecar with these settings serves ${database.name} (SIDECAR_DATABASES): what follows is for one that does.`,
    ...machineLines(type, state, Object.hasOwn(table.machines, type) ? table.machines : options.guarded),
    ...handlerLines(handler, doc, options),
    ...shadowLines(type, state, table),
    ...faults.map((fault) => `It is not started: ${fault}.`),
    ...happened(doc),
    ...(await next(doc, runs, options)),
  ]
  if (doc._conflicts) lines.push(`It has conflicting revisions: ${doc._conflicts.join(', ')}.`)
  return lines
}

function handlerLines(
  handler: Registration | undefined,
  doc: StoredDoc,
  { table, guarded, settings }: ExplainOptions,
): string[] {
  const [type, state] = [String(doc.type), String(doc.state)]
  if (handler) {
    const { attempts, timeoutMs } = handler.options
    const tries = attempts === Number.MAX_SAFE_INTEGER ? 'until it is done' : `up to ${attempts} times`
    return [
      `Its handler${versionIn(handler)} is ${handler.mode}, and tries ${tries}, each at most ${lasting(timeoutMs)}.`,
      ...limitLines(handler, doc),
      ...settingLines(`${type}/${state}`, settings),
    ]
  }
  const { timeout, renamed } = stateIn(table.machines, type, state) ?? {}
  if (renamed !== undefined) return [`A running sidecar gives it this name, and what was known of it stays.`]
  const { mode } = stateIn(guarded, type, state) ?? {}
  return [
    `No handler takes documents of type ${type} in this state${timeout ? '; only its time runs.' : '. Nothing happens by itself.'}`,
    ...(mode ? [`The database declares one (${mode}): is SIDECAR_HANDLERS here that of the running sidecar?`] : []),
  ]
}

function shadowLines(type: string, state: string, { shadows = [] }: DispatchTable): string[] {
  const shadow = shadows.find((one) => one.type === type && one.state === state)
  if (!shadow) return []
  return [`A shadow handler${versionIn(shadow)} is tried out on it: its effects are withheld, and the log tells them.`]
}

const versionIn = ({ options: { version } }: Registration) => (version === undefined ? '' : ` of version ${version}`)

/** What may keep a document waiting although it is ready. */
function limitLines(handler: Registration, doc: StoredDoc): string[] {
  const { globalConcurrency, limit, priority } = handler.options
  const lines: string[] = []
  try {
    const key = keyOf(handler, doc)
    if (key !== undefined) lines.push(`Documents with its key, "${key}", run one after the other.`)
  } catch (thrown) {
    lines.push(`It will be refused: ${failureOf(thrown).reason}.`)
  }
  if (globalConcurrency !== undefined)
    lines.push(`At most ${globalConcurrency} run at the same time, in all workers together.`)
  if (priority !== handlerDefaults.priority)
    lines.push(`Its priority is ${priority}, where most have ${handlerDefaults.priority}: lower ones come first.`)
  if (limit) lines.push(`At most ${limit.count} begin in ${lasting(limit.perMs)}, in all workers together.`)
  return lines
}

/** What holds in place of its options. */
function settingLines(name: string, settings: HandlerSettings): string[] {
  const { paused, concurrency, limit } = (Object.hasOwn(settings, name) && settings[name]) || {}
  const id = settingsId('handlers')
  return [
    ...(paused ? [`Its handler is paused (${id}): couchdb-sidecar resume ${shellWord(name)} lets it go on.`] : []),
    ...(concurrency === undefined ? [] : [`At most ${concurrency} run at the same time in each process (${id}).`]),
    ...(limit === undefined ? [] : [`At most ${limit.count} begin in ${limit.per}, in all workers together (${id}).`]),
  ]
}

function happened(doc: StoredDoc): string[] {
  const docstate = docstateOf(doc)
  const lines: string[] = []
  const tries = failedTries(docstate)
  const lost = timesLost(docstate)
  if (lost > 0) {
    lines.push(
      `${lost} ${lost === 1 ? 'worker was' : 'workers were'} lost while its handler ran, so it runs by itself.`,
    )
  }
  if (tries > 0) lines.push(`${tries} ${tries === 1 ? 'try' : 'tries'} failed.`)
  if (docstate?.failure) {
    const { at, code, reason, version } = docstate.failure
    lines.push(`The last failure, at ${at}${byVersion(version)}: ${code}: ${reason}`)
  }
  if (docstate?.failed_in) {
    const { code, reason, at, version } = (doc.error ?? {}) as Record<string, string | undefined>
    lines.push(`It failed in state ${docstate.failed_in}, at ${at}${byVersion(version)}: ${code}: ${reason}`)
  }
  const steps = Object.keys(stepsDone(docstate))
  if (steps.length > 0) lines.push(`These steps are done, and are not run again: ${steps.join(', ')}.`)
  if (docstate?.retried) lines.push(`It was brought back at ${docstate.retried.at} by ${docstate.retried.by}.`)
  if (docstate?.handled) lines.push(`Its handler was done with it at ${docstate.handled}, and left it in this state.`)
  return lines
}

const byVersion = (version: string | undefined) => (version === undefined ? '' : `, by version ${version}`)

async function next(doc: StoredDoc, table: DispatchTable, options: ExplainOptions): Promise<string[]> {
  const { database, control, clock, settings, hasWorker, signal } = options
  const docstate = docstateOf(doc)
  if (docstate?.parked) {
    return [
      `It is parked since ${docstate.parked.at}: ${docstate.parked.reason}`,
      'Find out whether its effect happened; then "couchdb-sidecar retry" runs it again, or write its next state.',
    ]
  }
  if (docstate?.discarded) {
    return [
      `It was discarded at ${docstate.discarded.at} by ${docstate.discarded.by}.`,
      '"couchdb-sidecar discard --undo" takes that back, "couchdb-sidecar retry" brings it to its handler.',
    ]
  }
  if (docstate?.failed_in) return ['"couchdb-sidecar retry" brings it back to be tried again.']
  const isPaused = ({ type, state }: Registration) => settings[`${type}/${state}`]?.paused ?? false
  const classification = createClassify(table, isPaused)(doc, clock.now())
  switch (classification.kind) {
    case 'ignore':
    case 'shadow':
    case 'undeclared':
      return []
    case 'conflict':
      return [
        'Replication has brought revisions beside it: a running sidecar makes one of them, and goes on from that.',
        'If they stay, its log tells what keeps it from doing so ("a conflict cannot be resolved").',
      ]
    case 'paused':
      return [
        'It is ready, and waits until its handler goes on.',
        ...(classification.until === undefined ? [] : [timeEnds(classification.until)]),
      ]
    case 'ready':
      if (
        isSinceNow(classification.registration) &&
        (await isOlder({ database, control, signal }, classification.registration, doc._id))
      ) {
        return [
          "It was there before its handler, which takes only what is new (since: 'now'). What is changed in it makes it new.",
        ]
      }
      if (!((await hasWorker?.(classification.registration)) ?? true))
        return ['It is ready, and no worker is registered that has its handler: couchdb-sidecar start runs one.']
      return ['It is ready: a running sidecar takes it at once, or within a minute where no feed has told of it.']
    case 'wait': {
      const { until } = classification
      return [docstate?.retry_at ? `The next try is due at ${isoTime(until)}.` : timeEnds(until)]
    }
    case 'untimed':
      return ['Its time in this state begins when a sidecar sees it.']
    case 'claimed': {
      const { worker, at, lease_ms, begun, version } = classification.claim
      const hasBegun = begun !== false
      const parks = hasBegun && classification.registration.options.onLost === 'park'
      return [
        `The worker ${worker} holds it, renewed at ${at}${byVersion(version)}.${hasBegun ? '' : ' Its handler has not begun.'}`,
        `If ${worker} does not renew its claim for ${lease_ms / 1000} s, another one takes over: it ${
          parks ? 'parks it' : 'tries again'
        }.`,
      ]
    }
  }
}

const timeEnds = (until: number) => `Its time in this state ends at ${isoTime(until)}.`

/** What is declared about a state, as sentences about a document in it. */
function machineLines(type: string, state: string, machines: Machines): string[] {
  const machine = Object.hasOwn(machines, type) ? machines[type] : undefined
  if (!machine) return [`No machine is declared for ${type}: any state may follow any other.`]
  const declared = stateIn(machines, type, state)
  if (!declared) return [`The machine of ${type} has no such state, but ${Object.keys(machine).join(', ')}.`]
  if (declared.renamed !== undefined) return [`The state is called ${declared.renamed} now.`]
  const targets = Object.entries(declared.next ?? {}).map(([target, writer]) => `${target} (by the ${writer})`)
  const { timeout } = declared
  return [
    targets.length > 0 ? `It may become ${targets.join(', ')}.` : 'No state is declared to follow this one.',
    ...(timeout ? [`${whenEnds(timeout)} it becomes ${timeout.next}.`] : []),
  ]
}

const whenEnds = (timeout: Timeout) =>
  'at' in timeout ? `At the time in its field ${timeout.at}` : `After ${lasting(timeout.afterMs)} in this state`

/** Undefined where it is not declared. */
function stateIn(machines: Machines, type: string, state: string): State | undefined {
  const machine = (Object.hasOwn(machines, type) ? machines[type] : undefined) ?? {}
  return Object.hasOwn(machine, state) ? machine[state] : undefined
}
