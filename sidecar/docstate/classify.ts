import { inspect } from 'node:util'
import { A_TIME, isTime } from '../../ddocs/lib/time.ts'
import type { Machines, Timeout } from '../../ddocs/machine.ts'
import { Reject } from '../core/errors.ts'
import { SHOWN } from '../core/failure.ts'
import type { Doc, StoredDoc } from '../couch/documents.ts'
import { handlerDefaults } from './handler-options.ts'
import type { Resolver } from './conflicts/merge.ts'
import type { TypeAndState } from '../workers/partitioning.ts'
import { isUndeclared } from './undeclared.ts'
import type { Claim, Docstate, Registration } from './types.ts'

/** What to do with a document now. Only this module reads `docstate` to decide. */
export type Classification =
  /** Nothing to do: no handler, already handled, or parked until an operator decides. */
  | { readonly kind: 'ignore' }
  /** Nothing to do, and the machine does not declare the state. */
  | { readonly kind: 'undeclared' }
  | { readonly kind: 'ready'; readonly registration: Registration }
  /** Ready, but the handler is paused: a resync finds the document later. `until`: end of the state's timeout. */
  | { readonly kind: 'paused'; readonly registration: Registration; readonly until: number | undefined }
  /** Nothing to do, but a shadow handler runs. */
  | { readonly kind: 'shadow' }
  /** Classify again at this time (milliseconds since the epoch): a retry is due, or a state's timeout is over. */
  | { readonly kind: 'wait'; readonly until: number }
  | { readonly kind: 'claimed'; readonly claim: Claim; readonly registration: Registration }
  /** Replication has brought conflicting revisions: nothing else is done until they are resolved. */
  | { readonly kind: 'conflict'; readonly registration: Registration }
  /** The state has a timeout that ends at `until`, but the document does not record this time yet. */
  | { readonly kind: 'untimed'; readonly until: number; readonly registration: Registration }

const IGNORE: Classification = { kind: 'ignore' }
const UNDECLARED: Classification = { kind: 'undeclared' }
const SHADOW: Classification = { kind: 'shadow' }

/** Whether a document needs no work. */
export const isIdle = ({ kind }: Classification): boolean => kind === 'ignore' || kind === 'undeclared'

/** The dispatch table: handlers and timeouts by type and state. */
export interface DispatchTable {
  readonly registrations: readonly Registration[]
  /** Handlers whose effects are withheld. */
  readonly shadows?: readonly Registration[]
  /** Types with a handler for deleted documents. */
  readonly deletions?: readonly { readonly type: string }[]
  readonly machines: Machines
  /** Conflict resolvers by type. */
  readonly resolvers?: ReadonlyMap<string, Resolver>
}

/** Type and state for a shadow handler. They differ from the real handler's, which another worker may run. */
export const shadowOf = ({ type, state }: TypeAndState): TypeAndState => ({ type, state: `${state} (shadow)` })

/** Type and state for deleted documents: one worker handles them in each database. */
export const deletedOf = ({ type }: { readonly type: string }): TypeAndState => ({ type, state: '(deleted)' })

/** Every type and state with a handler, a timeout or a new name. Each once. */
export function typesAndStatesOf({
  registrations,
  shadows = [],
  deletions = [],
  machines,
}: DispatchTable): TypeAndState[] {
  const pairs = [
    ...registrations.map(({ type, state }) => ({ type, state })),
    ...shadows.map(shadowOf),
    ...deletions.map(deletedOf),
  ]
  const all = new Map(pairs.map((pair) => [keyOf(pair.type, pair.state), pair]))
  for (const { registration } of [...timeoutsOf(machines).values(), ...renamesOf(machines).values()]) {
    const { type, state } = registration
    all.set(keyOf(type, state), { type, state })
  }
  return [...all.values()]
}

/** Every type whose conflicts are resolved: it has a handler or a machine. Each once. */
export const typesOf = ({ registrations, machines }: DispatchTable): string[] => [
  ...new Set([...registrations.map(({ type }) => type), ...Object.keys(machines)]),
]

/** Pseudo-state of every document with branches: the real state, and so its handler, is unknown before the merge. */
export const IN_CONFLICT = 'in conflict'

export type Classify = (doc: StoredDoc, now: number) => Classification

const never = () => false

/** @param isPaused whether no run of a handler may begin now */
export function createClassify(
  { registrations, shadows = [], machines }: DispatchTable,
  isPaused: (registration: Registration) => boolean = never,
): Classify {
  const table = new Map<string, Registration>(registrations.map((entry) => [keyOf(entry.type, entry.state), entry]))
  const shadowed = new Set(shadows.map(({ type, state }) => keyOf(type, state)))
  const timeouts = timeoutsOf(machines)
  const renames = renamesOf(machines)
  /** For claims held under a state's old name: mode and options of the handler for the new name. */
  const held = new Map(
    [...renames].map(([key, { registration, renamed }]) => {
      const { mode, options } = table.get(keyOf(registration.type, renamed)) ?? HELD
      return [key, { ...registration, mode, options }] as const
    }),
  )

  return (doc, now) => {
    const { type, state } = doc
    // Any type counts: a branch of another type may hide a branch of ours.
    if (doc._conflicts && !doc._id.startsWith('_design/')) return { kind: 'conflict', registration: conflictOf(type) }
    if (typeof type !== 'string' || typeof state !== 'string') return IGNORE
    const renamed = renames.get(keyOf(type, state))
    if (renamed) {
      const { claim, handled, parked } = docstateOf(doc) ?? {}
      if (!isClaim(claim) || handled || parked) return { kind: 'ready', registration: renamed.registration }
      return { kind: 'claimed', claim, registration: held.get(keyOf(type, state))! }
    }
    const registration = table.get(keyOf(type, state))
    const timeout = timeouts.get(keyOf(type, state))
    if (!registration && !timeout) {
      if (shadowed.has(keyOf(type, state))) return SHADOW
      return isUndeclared(machines, type, state) ? UNDECLARED : IGNORE
    }

    const docstate = docstateOf(doc)
    const handled = Boolean(docstate?.handled)
    if (docstate?.parked && !handled) return IGNORE
    if (registration && !handled && isClaim(docstate?.claim)) {
      return { kind: 'claimed', claim: docstate.claim, registration }
    }
    if (timeout) {
      const written = timeOf(docstate?.timeout_at)
      const { ends, registration: end } = timeout
      const until = 'at' in ends || written === undefined ? endOf(ends, doc, now) : written
      if (until === undefined || until <= now) return { kind: 'ready', registration: end }
      if (until !== written) return { kind: 'untimed', until, registration: end }
      if (!registration || handled) return { kind: 'wait', until }
      if (isPaused(registration)) return { kind: 'paused', registration, until }
    }
    if (!registration || handled) return IGNORE
    const retryAt = timeOf(docstate?.retry_at)
    if (retryAt !== undefined && retryAt > now) return { kind: 'wait', until: retryAt }
    return isPaused(registration) ? { kind: 'paused', registration, until: undefined } : { kind: 'ready', registration }
  }
}

/** End of a state that a document enters now, milliseconds since the epoch; undefined for an invalid field. */
export function endOf(timeout: Timeout, doc: Doc, now: number): number | undefined {
  if ('afterMs' in timeout) return now + timeout.afterMs
  const field = doc[timeout.at]
  return isTime(field) ? Date.parse(field) : undefined
}

interface End {
  readonly ends: Timeout
  /** A safe handler, made from the machine, that ends the state. */
  readonly registration: Registration
}

/** A cache: thousands of engines share the machines, and a registration is the identity of a handler. */
const timeoutsByMachines = new WeakMap<Machines, ReadonlyMap<string, End>>()

function timeoutsOf(machines: Machines): ReadonlyMap<string, End> {
  const known = timeoutsByMachines.get(machines)
  if (known) return known
  const timeouts = new Map<string, End>()
  timeoutsByMachines.set(machines, timeouts)
  for (const [type, machine] of Object.entries(machines)) {
    for (const [state, { timeout }] of Object.entries(machine)) {
      if (!timeout) continue
      const handler = async (doc: StoredDoc) => {
        if (endOf(timeout, doc, 0) !== undefined) return { ...doc, state: timeout.next }
        const field = 'at' in timeout ? timeout.at : ''
        throw new Reject('bad_time', `${field}: expected ${A_TIME}, got ${inspect(doc[field], SHOWN)}`)
      }
      const registration: Registration = {
        ...{ type, state, mode: 'safe', handler },
        ...{ options: handlerDefaults, byMachine: 'timeout' },
      }
      timeouts.set(keyOf(type, state), { ends: timeout, registration })
    }
  }
  return timeouts
}

interface Rename {
  /** The state's new name. */
  readonly renamed: string
  /** The handler of the state's old name. */
  readonly registration: Registration
}

const renamesByMachines = new WeakMap<Machines, ReadonlyMap<string, Rename>>()

function renamesOf(machines: Machines): ReadonlyMap<string, Rename> {
  const known = renamesByMachines.get(machines)
  if (known) return known
  const renames = new Map<string, Rename>()
  renamesByMachines.set(machines, renames)
  for (const [type, machine] of Object.entries(machines)) {
    for (const [state, { renamed }] of Object.entries(machine)) {
      if (renamed === undefined) continue
      const handler = (doc: StoredDoc) => Promise.resolve({ ...doc, state: renamed })
      const registration: Registration = {
        ...{ type, state, mode: 'safe', handler },
        ...{ options: handlerDefaults, byMachine: 'rename' },
      }
      renames.set(keyOf(type, state), { renamed, registration })
    }
  }
  return renames
}

/** For a claim on a renamed state whose handler this worker does not have. */
const HELD = { mode: 'unsafe', options: handlerDefaults } as const

/** A conflict is resolved by an attempt without a handler. */
const conflictOf = (type: unknown): Registration => {
  return {
    type: String(type),
    state: IN_CONFLICT,
    mode: 'safe',
    handler: () => Promise.resolve(),
    options: handlerDefaults,
  }
}

const keyOf = (type: string, state: string) => `${type}\0${state}`

/** The field `docstate`, if it is about the document's current state. Any other content is ignored. */
export function docstateOf(doc: Doc): Docstate | undefined {
  const field = doc.docstate
  if (typeof field !== 'object' || field === null) return undefined
  return (field as Docstate).state === doc.state ? (field as Docstate) : undefined
}

/** A time in a document as milliseconds since the epoch; undefined if it is not a valid time. */
function timeOf(written: unknown): number | undefined {
  const ms = typeof written === 'string' ? Date.parse(written) : NaN
  return Number.isNaN(ms) ? undefined : ms
}

/** Whether a field is a claim: a client may write any value. */
export function isClaim(field: unknown): field is Claim {
  const claim = field as Partial<Claim> | null | undefined
  return typeof claim?.token === 'string' && typeof claim.lease_ms === 'number'
}
