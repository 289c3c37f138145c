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

/** What a document asks for now. The one place that reads `docstate` to decide. */
export type Classification =
  /** No business of ours: no handler, or it is done with, or a person has to decide. */
  | { readonly kind: 'ignore' }
  /** As `ignore`; and its machine does not declare the state. */
  | { readonly kind: 'undeclared' }
  | { readonly kind: 'ready'; readonly registration: Registration }
  /** It would be `ready`, but its handler is paused: the list has it. With `until`, its time in the state ends then. */
  | { readonly kind: 'paused'; readonly registration: Registration; readonly until: number | undefined }
  /** As `ignore`, but that a handler is tried out on it. */
  | { readonly kind: 'shadow' }
  /** Look again at this time (milliseconds since the epoch): another try is due, or a state's time is up. */
  | { readonly kind: 'wait'; readonly until: number }
  | { readonly kind: 'claimed'; readonly claim: Claim; readonly registration: Registration }
  /** Replication has brought revisions that stand beside each other: nothing is done before there is one. */
  | { readonly kind: 'conflict'; readonly registration: Registration }
  /** The state has a timeout, but its end, which is then, is not written down. */
  | { readonly kind: 'untimed'; readonly until: number; readonly registration: Registration }

const IGNORE: Classification = { kind: 'ignore' }
const UNDECLARED: Classification = { kind: 'undeclared' }
const SHADOW: Classification = { kind: 'shadow' }

/** Whether there is nothing to be done with a document. */
export const isIdle = ({ kind }: Classification): boolean => kind === 'ignore' || kind === 'undeclared'

/** The dispatch table: handlers and timeouts by type and state. */
export interface DispatchTable {
  readonly registrations: readonly Registration[]
  /** Those whose effects are withheld. */
  readonly shadows?: readonly Registration[]
  /** Types of which something is done where documents are deleted. */
  readonly deletions?: readonly { readonly type: string }[]
  readonly machines: Machines
  /** By type. */
  readonly resolvers?: ReadonlyMap<string, Resolver>
}

/** Where documents wait for a handler whose effects are withheld: beside the other one, of this worker or of another. */
export const shadowOf = ({ type, state }: TypeAndState): TypeAndState => ({ type, state: `${state} (shadow)` })

/** Where deleted documents wait: for one worker in each database. */
export const deletedOf = ({ type }: { readonly type: string }): TypeAndState => ({ type, state: '(deleted)' })

/** Every type and state of which documents are taken: that have a handler, or an end. Each once. */
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

/** Every type of which conflicts are resolved: that has a handler, or a machine. Each once. */
export const typesOf = ({ registrations, machines }: DispatchTable): string[] => [
  ...new Set([...registrations.map(({ type }) => type), ...Object.keys(machines)]),
]

/** Where a document waits that has branches, whatever its state: for whose handlers it is, is not known before. */
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
  /** What becomes of a claim that a worker with the old name holds: as the handler says that has the state now. */
  const held = new Map(
    [...renames].map(([key, { registration, renamed }]) => {
      const { mode, options } = table.get(keyOf(registration.type, renamed)) ?? HELD
      return [key, { ...registration, mode, options }] as const
    }),
  )

  return (doc, now) => {
    const { type, state } = doc
    // Of any type: a branch of ours may be hidden by one of another.
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

/** When a state ends into which a document comes now, milliseconds since the epoch; undefined if that cannot be told. */
export function endOf(timeout: Timeout, doc: Doc, now: number): number | undefined {
  if ('afterMs' in timeout) return now + timeout.afterMs
  const field = doc[timeout.at]
  return isTime(field) ? Date.parse(field) : undefined
}

interface End {
  readonly ends: Timeout
  /** The end of a state's time is handled like anything else: by a safe handler, made from the table. */
  readonly registration: Registration
}

/** Thousands of engines come and go with the same machines, and a handler is known by its registration. */
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
  /** What the state is called now. */
  readonly renamed: string
  /** From the state as it was called. */
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

/** Of a claim on a state whose handler is not here. */
const HELD = { mode: 'unsafe', options: handlerDefaults } as const

/** Settling a conflict is an attempt like any other; no handler takes part in it. */
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

/** The engine's field, if it speaks of the state the document is in. Anything else written there counts for nothing. */
export function docstateOf(doc: Doc): Docstate | undefined {
  const field = doc.docstate
  if (typeof field !== 'object' || field === null) return undefined
  return (field as Docstate).state === doc.state ? (field as Docstate) : undefined
}

/** Milliseconds of a time written in a document; undefined for anything that is not one. */
function timeOf(written: unknown): number | undefined {
  const ms = typeof written === 'string' ? Date.parse(written) : NaN
  return Number.isNaN(ms) ? undefined : ms
}

/** What a client wrote there may be anything. */
export function isClaim(field: unknown): field is Claim {
  const claim = field as Partial<Claim> | null | undefined
  return typeof claim?.token === 'string' && typeof claim.lease_ms === 'number'
}
