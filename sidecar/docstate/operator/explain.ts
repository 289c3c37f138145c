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
  /** Dispatch table of a sidecar with these settings. */
  readonly table: DispatchTable
  readonly clock: Clock
  readonly id: string
  /** Whether these settings serve the database. */
  readonly served: boolean
  /** The machines that guard the database. */
  readonly guarded: Machines
  /** Reasons why a sidecar does not start this handler in the database, as sentences. */
  readonly faultsOf: (registration: Registration) => readonly string[]
  /** The control database. */
  readonly control: Database
  /** Live settings that replace options of handlers. */
  readonly settings: HandlerSettings
  /** Whether a registered worker has a handler for it in this database. Default yes. */
  readonly hasWorker?: (pair: TypeAndState) => Promise<boolean>
  readonly signal?: AbortSignal
}

/**
 * Explains one document in sentences for people: its handler, its holder, what happened, and what happens next and
 * when. Contacts no worker. Throws `SidecarError` (code `not-found`), `CouchError`.
 */
export async function explain(options: ExplainOptions): Promise<string[]> {
  const { database, table, id, served, signal } = options
  const doc = await database.find(id, { conflicts: true }, { signal })
  if (!doc) {
    await database.info({ signal }) // throws if the database does not exist
    throw new SidecarError('not-found', `the database ${database.name} has no document "${id}"`)
  }
  const { type, state } = doc
  if (typeof type !== 'string' || typeof state !== 'string') {
    return [`No handler takes ${id}: the fields type and state of the document must be strings.`]
  }
  const handler = table.registrations.find((entry) => entry.type === type && entry.state === state)
  const faults = handler ? options.faultsOf(handler) : []
  const runs = { ...table, registrations: faults.length > 0 ? [] : table.registrations }
  const lines = [
    `${id} is of type ${type}, in state ${state}, revision ${doc._rev}.`,
    served
      ? `A sidecar with these settings serves ${database.name}.`
      : `No sidecar with these settings serves ${database.name}: SIDECAR_DATABASES does not match it. The lines below assume a match.`,
    ...machineLines(type, state, Object.hasOwn(table.machines, type) ? table.machines : options.guarded),
    ...handlerLines(handler, doc, options),
    ...shadowLines(type, state, table),
    ...faults.map((fault) => `The sidecar does not start this handler: ${fault}.`),
    ...happened(doc),
    ...(await next(doc, runs, options)),
  ]
  if (doc._conflicts) lines.push(`The document has conflicting revisions: ${doc._conflicts.join(', ')}.`)
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
    const limit = attempts === Number.MAX_SAFE_INTEGER ? 'no attempt limit' : `an attempt limit of ${attempts}`
    return [
      `The handler${versionIn(handler)} is ${handler.mode}, with ${limit} and a timeout of ${lasting(timeoutMs)}.`,
      ...limitLines(handler, doc),
      ...settingLines(`${type}/${state}`, settings),
    ]
  }
  const { timeout, renamed } = stateIn(table.machines, type, state) ?? {}
  if (renamed !== undefined)
    return ['A running sidecar renames the state in the document and keeps the rest of docstate.']
  const { mode } = stateIn(guarded, type, state) ?? {}
  return [
    `No handler takes documents of type ${type} in state ${state}. ${timeout ? 'Only the timeout applies.' : 'Nothing happens automatically.'}`,
    ...(mode ? [`The database declares a handler (${mode}). Use the SIDECAR_HANDLERS of the running sidecar.`] : []),
  ]
}

function shadowLines(type: string, state: string, { shadows = [] }: DispatchTable): string[] {
  const shadow = shadows.find((one) => one.type === type && one.state === state)
  if (!shadow) return []
  return [`A shadow handler${versionIn(shadow)} runs on the document. The sidecar only logs its effects.`]
}

const versionIn = ({ options: { version } }: Registration) => (version === undefined ? '' : ` of version ${version}`)

/** Limits that may delay a ready document. */
function limitLines(handler: Registration, doc: StoredDoc): string[] {
  const { globalConcurrency, limit, priority } = handler.options
  const lines: string[] = []
  try {
    const key = keyOf(handler, doc)
    if (key !== undefined) lines.push(`The handler runs for one document with the key "${key}" at a time.`)
  } catch (thrown) {
    lines.push(`The document will fail: ${failureOf(thrown).reason}.`)
  }
  if (globalConcurrency !== undefined)
    lines.push(`At most ${globalConcurrency} attempts run in parallel, in all workers.`)
  if (priority !== handlerDefaults.priority)
    lines.push(`The priority is ${priority} (default: ${handlerDefaults.priority}). Lower numbers run first.`)
  if (limit) lines.push(`At most ${limit.count} attempts start in ${lasting(limit.perMs)}, in all workers.`)
  return lines
}

/** Live settings that replace the handler's options. */
function settingLines(name: string, settings: HandlerSettings): string[] {
  const { paused, concurrency, limit } = (Object.hasOwn(settings, name) && settings[name]) || {}
  const id = settingsId('handlers')
  return [
    ...(paused ? [`The handler is paused (${id}). To resume it, run: couchdb-sidecar resume ${shellWord(name)}`] : []),
    ...(concurrency === undefined ? [] : [`At most ${concurrency} attempts run in parallel in each process (${id}).`]),
    ...(limit === undefined ? [] : [`At most ${limit.count} attempts start in ${limit.per}, in all workers (${id}).`]),
  ]
}

function happened(doc: StoredDoc): string[] {
  const docstate = docstateOf(doc)
  const lines: string[] = []
  const tries = failedTries(docstate)
  const lost = timesLost(docstate)
  if (lost > 0) {
    lines.push(
      `${lost} ${lost === 1 ? 'worker was' : 'workers were'} lost while the handler ran. The next attempt is isolated from other documents.`,
    )
  }
  if (tries > 0) lines.push(`${tries} ${tries === 1 ? 'attempt' : 'attempts'} failed.`)
  if (docstate?.failure) {
    const { at, code, reason, version } = docstate.failure
    lines.push(`The last failure happened at ${at}${inVersion(version)}: ${code}: ${reason}`)
  }
  if (docstate?.failed_in) {
    const { code, reason, at, version } = (doc.error ?? {}) as Record<string, string | undefined>
    lines.push(`The document failed in state ${docstate.failed_in} at ${at}${inVersion(version)}: ${code}: ${reason}`)
  }
  const steps = Object.keys(stepsDone(docstate))
  if (steps.length > 0) lines.push(`These steps are complete and do not run again: ${steps.join(', ')}.`)
  if (docstate?.retried) lines.push(`The document was retried at ${docstate.retried.at} by ${docstate.retried.by}.`)
  if (docstate?.handled) lines.push(`The handler finished at ${docstate.handled} and left the document in this state.`)
  return lines
}

const inVersion = (version: string | undefined) => (version === undefined ? '' : ` (version ${version})`)

async function next(doc: StoredDoc, table: DispatchTable, options: ExplainOptions): Promise<string[]> {
  const { database, control, clock, settings, hasWorker, signal } = options
  const docstate = docstateOf(doc)
  if (docstate?.parked) {
    return [
      `The document has been parked since ${docstate.parked.at}: ${docstate.parked.reason}`,
      'Check whether the effect of the handler happened. If it did not, run "couchdb-sidecar retry"; if it did, write the next state.',
    ]
  }
  if (docstate?.discarded) {
    return [
      `The document was discarded at ${docstate.discarded.at} by ${docstate.discarded.by}.`,
      '"couchdb-sidecar discard --undo" restores the document; "couchdb-sidecar retry" runs the handler.',
    ]
  }
  if (docstate?.failed_in) return ['"couchdb-sidecar retry" runs the handler again.']
  const isPaused = ({ type, state }: Registration) => settings[`${type}/${state}`]?.paused ?? false
  const classification = createClassify(table, isPaused)(doc, clock.now())
  switch (classification.kind) {
    case 'ignore':
    case 'shadow':
    case 'undeclared':
      return []
    case 'conflict':
      return [
        'Replication created conflicting revisions. A running sidecar merges them and continues with the result.',
        'If the conflict stays, search the log of the sidecar for "a conflict cannot be resolved".',
      ]
    case 'paused':
      return [
        'The document is ready and waits until the handler is resumed.',
        ...(classification.until === undefined ? [] : [timeEnds(classification.until)]),
      ]
    case 'ready':
      if (
        isSinceNow(classification.registration) &&
        (await isOlder({ database, control, signal }, classification.registration, doc._id))
      ) {
        return [
          "The document has not changed since the handler first started, so the handler ignores it (since: 'now'). Any change to the document starts the handler.",
        ]
      }
      if (!((await hasWorker?.(classification.registration)) ?? true))
        return ['The document is ready, but no registered worker has the handler: couchdb-sidecar start runs one.']
      return ['The document is ready. A running sidecar takes it at once, or within a minute if no feed reports it.']
    case 'wait': {
      const { until } = classification
      return [docstate?.retry_at ? `The next attempt is due at ${isoTime(until)}.` : timeEnds(until)]
    }
    case 'untimed':
      return ['The timeout of the state starts when a sidecar reads the document.']
    case 'claimed': {
      const { worker, at, lease_ms, begun, version } = classification.claim
      const hasBegun = begun !== false
      const parks = hasBegun && classification.registration.options.onLost === 'park'
      return [
        `The worker ${worker}${inVersion(version)} holds the document and renewed the claim at ${at}.${hasBegun ? '' : ' The handler has not started.'}`,
        `If ${worker} does not renew the claim for ${lease_ms / 1000} s, another worker takes over and ${
          parks ? 'parks the document' : 'runs the handler'
        }.`,
      ]
    }
  }
}

const timeEnds = (until: number) => `The state times out at ${isoTime(until)}.`

/** Describes what is declared about a state, as sentences about a document in it. */
function machineLines(type: string, state: string, machines: Machines): string[] {
  const machine = Object.hasOwn(machines, type) ? machines[type] : undefined
  if (!machine) return [`The type ${type} has no machine. Any state may follow any other.`]
  const declared = stateIn(machines, type, state)
  if (!declared) return [`The machine of ${type} has no state ${state}, only ${Object.keys(machine).join(', ')}.`]
  if (declared.renamed !== undefined) return [`The state ${state} is now called ${declared.renamed}.`]
  const targets = Object.entries(declared.next ?? {}).map(([target, writer]) => `${target} (by the ${writer})`)
  const { timeout } = declared
  return [
    targets.length > 0 ? `The next state can be ${targets.join(' or ')}.` : 'The machine declares no next state.',
    ...(timeout ? [`The state times out ${whenEnds(timeout)}. The document then goes to state ${timeout.next}.`] : []),
  ]
}

const whenEnds = (timeout: Timeout) =>
  'at' in timeout ? `at the time in the field ${timeout.at}` : `after ${lasting(timeout.afterMs)}`

/** Declaration of the state; undefined if not declared. */
function stateIn(machines: Machines, type: string, state: string): State | undefined {
  const machine = (Object.hasOwn(machines, type) ? machines[type] : undefined) ?? {}
  return Object.hasOwn(machine, state) ? machine[state] : undefined
}
