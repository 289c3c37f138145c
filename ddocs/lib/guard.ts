/**
 * Who may write what, by the table of machines: the part of `validate_doc_update` that serves every database. Clients
 * are hostile, so that whatever the table does not list is refused: a client changes a document of a declared type by
 * a listed transition and in no other way.
 *
 * Revisions count too. By replication a client may send branches beside a document's history; CouchDB lets the longer
 * branch win, and shows only what it knows of it (no old document for an unknown branch, an early one for a branch
 * with invented revisions in the middle). A write must therefore be the very next revision after the one it changes,
 * and a new document the first. A client's branch then grows only by transitions that follow one another without the
 * sidecar, which sees no branch but the winner: a machine in which clients alone can go round lets them overtake.
 *
 * That is for strangers. Where only a user's own devices write, `mayHaveSteps` takes what a device may have come to by
 * several steps while it was offline: replication brings the last of them. And it takes what a device may write upon
 * anything where its former content is unknown: a compaction takes away what a branch began with.
 */
import type { Machine, Machines, Writer } from '../machine.ts'
import { has, isObject, quote, type Doc, type UserCtx } from './document.ts'
import { same } from './same.ts'
import { A_TIME, isTime } from './time.ts'

export interface Write {
  readonly newDoc: Doc
  readonly oldDoc: Doc | null
  readonly userCtx: UserCtx
  readonly machines: Machines
  /** Several steps of clients may arrive as one. */
  readonly mayHaveSteps?: boolean
}

/** The document that the write changes: none if it is new, or written over a deleted one. */
export const beforeOf = ({ oldDoc }: Pick<Write, 'oldDoc'>): Doc | null => (oldDoc && !oldDoc._deleted ? oldDoc : null)

/** A change of unknown content: it was compacted away, or was never here. */
export const isUponUnknown = ({ newDoc, oldDoc }: Pick<Write, 'newDoc' | 'oldDoc'>): boolean =>
  !oldDoc && generationOf(newDoc) > 1

/** `_revisions.start` counts the old revision on a plain write, the new one on a replicated one. */
const generationOf = ({ _revisions: revisions }: Doc): number =>
  isObject(revisions) && typeof revisions.start === 'number' ? revisions.start : 0

/** For those who may leave out whose the document is: only the sidecar writes that. */
export const withItsOwner = (doc: Doc, before: Doc | null): Doc =>
  before && doc.owner_role === undefined ? { ...doc, owner_role: before.owner_role } : doc

/** Why a client may not write this, as a sentence; undefined if the table allows it. Not asked for admins. */
export function refusalOf(given: Write): string | undefined {
  const { newDoc, machines } = given
  const before = beforeOf(given)
  if (before && isHeld(before)) return 'this document is being handled; try again shortly'

  const guarded = machineOf(machines, before?.type) ? before?.type : newDoc.type
  const machine = machineOf(machines, guarded)
  if (!machine) return newDoc._deleted ? undefined : docstateRefusal(newDoc, before)

  const type = String(guarded)
  if (newDoc._deleted) return `${a(type)} document may be deleted by an admin only`
  if (newDoc.type !== type) return `${a(type)} document keeps its type; got type ${quote(newDoc.type)}`
  const { state } = newDoc
  if (typeof state !== 'string' || !has(machine, state)) {
    const present = Object.keys(machine).filter((name) => !machine[name]!.renamed)
    return `${a(type)} document has one of the states ${present.join(', ')}; got ${quote(state)}`
  }
  if (newDoc.docstate !== undefined && !isRemnant(newDoc, before)) {
    return 'the field docstate is written by the sidecar only; leave it out'
  }
  const write = { ...given, newDoc: byItsName(newDoc, machine) }
  const reason =
    before?.type === type ? changeRefusal(machine, byItsName(before, machine), write) : creationRefusal(machine, write)
  return reason ?? timeRefusal(machine, write.newDoc) ?? (write.mayHaveSteps ? undefined : revisionRefusal(write))
}

/** In the state as it is called now: a device that has an earlier version of the app writes it as it was called. */
function byItsName(doc: Doc, machine: Machine): Doc {
  const { renamed } = (typeof doc.state === 'string' && has(machine, doc.state) && machine[doc.state]) || {}
  return renamed === undefined ? doc : { ...doc, state: renamed }
}

/** A state that ends at a time of the document needs one. */
function timeRefusal(machine: Machine, doc: Doc): string | undefined {
  const { timeout } = machine[String(doc.state)] ?? {}
  if (!timeout || !('at' in timeout) || isTime(doc[timeout.at])) return undefined
  return `${timeout.at}: expected ${A_TIME}, got ${quote(doc[timeout.at])}`
}

/** What the sidecar wrote of the state that the document leaves: a client that reads and writes the document may leave it there. */
const isRemnant = ({ state, docstate }: Doc, before: Doc | null): boolean =>
  !!before && isObject(docstate) && docstate.state !== state && same(docstate, before.docstate)

/** The type, as a sentence has it. */
const a = (type: unknown): string => `${/^[aeio]/i.test(String(type)) ? 'an' : 'a'} ${String(type)}`

/** Undefined for a type that was not declared. */
const machineOf = (machines: Machines, type: unknown): Machine | undefined =>
  typeof type === 'string' && has(machines, type) ? machines[type] : undefined

/** A worker has won it for the state it is in. */
function isHeld({ state, docstate }: Doc): boolean {
  return isObject(docstate) && docstate.state === state && isObject(docstate.claim)
}

/** Documents of undeclared types are free, except for the engine's own field. */
function docstateRefusal(newDoc: Doc, before: Doc | null): string | undefined {
  if (newDoc.docstate === undefined) return undefined
  const stays = before && before.type === newDoc.type && before.state === newDoc.state
  if (stays && same(before.docstate, newDoc.docstate)) return undefined
  return 'the field docstate is written by the sidecar only; leave it out'
}

function creationRefusal(machine: Machine, write: Write): string | undefined {
  const { newDoc, mayHaveSteps } = write
  const type = String(newDoc.type)
  const nextOf = (state: string) => writableFrom(machine, state, false)
  const begins = beginsOf(machine)
  const isUnknown = mayHaveSteps && isUponUnknown(write)
  const first = isUnknown ? anyOf(machine, nextOf) : begins
  const writable = mayHaveSteps ? withSteps(first, nextOf) : begins
  if (writable.indexOf(String(newDoc.state)) >= 0) return undefined
  const what = isUnknown
    ? `${a(type)} document that is not known as it was may be written`
    : `a new ${type} document begins`
  return `${what} in state ${writable.join(' or ') || '(none: only the sidecar makes them)'}; got ${quote(newDoc.state)}`
}

function changeRefusal(machine: Machine, before: Doc, { newDoc, userCtx, mayHaveSteps }: Write): string | undefined {
  const from = String(before.state)
  const to = String(newDoc.state)
  const nextOf = (state: string) => writableFrom(machine, state, isOwner(userCtx, before))
  const first = mayHaveSteps && !has(machine, from) ? anyOf(machine, nextOf) : nextOf(from) // a state that is none heals
  const writable = mayHaveSteps ? withSteps(first, nextOf) : first
  if (writable.indexOf(to) >= 0) return handoverRefusal(machine, before, newDoc)
  const next = nextIn(machine, from)
  const allowed = Object.keys(next)
    .filter((state) => next[state] !== 'sidecar')
    .map((state) => (next[state] === 'owner' ? `${state} (by its owner)` : state))
  return `${a(newDoc.type)} document in state ${from} may be written in state ${allowed.join(' or ') || '(none)'}; got ${quote(to)}`
}

const beginsOf = (machine: Machine): string[] =>
  Object.keys(machine).filter((state) => machine[state]?.create === 'client')

/** What may be written upon any document. */
const anyOf = (machine: Machine, nextOf: (state: string) => string[]): string[] =>
  beginsOf(machine).concat(...Object.keys(machine).map(nextOf))

const nextIn = (machine: Machine, state: string): Readonly<Record<string, Writer>> =>
  (has(machine, state) && machine[state]?.next) || {}

/** The states that a client may write after this one. */
function writableFrom(machine: Machine, state: string, byOwner: boolean): string[] {
  const next = nextIn(machine, state)
  return Object.keys(next).filter((to) => next[to] === 'client' || (byOwner && next[to] === 'owner'))
}

/** These states, and those that come after them by any number of steps. */
function withSteps(states: readonly string[], nextOf: (state: string) => readonly string[]): string[] {
  const reached: string[] = []
  const waiting = [...states]
  for (let state = waiting.shift(); state !== undefined; state = waiting.shift()) {
    if (reached.indexOf(state) >= 0) continue
    reached.push(state)
    waiting.push(...nextOf(state))
  }
  return reached
}

/** Where the owner has rights of its own, no client makes itself the owner. */
function handoverRefusal(machine: Machine, before: Doc, newDoc: Doc): string | undefined {
  const owned = Object.keys(machine).some((state) => {
    const next = machine[state]?.next ?? {}
    return Object.keys(next).some((target) => next[target] === 'owner')
  })
  const field = ['user', 'owner_role'].filter((name) => !same(before[name], newDoc[name]))[0]
  return owned && field
    ? `${field}: expected ${quote(before[field])} unchanged, got ${quote(newDoc[field])}`
    : undefined
}

/** The device itself, or another device of the same owner. The sidecar writes both fields. */
function isOwner({ name, roles }: UserCtx, { user, owner_role: role }: Doc): boolean {
  return (typeof user === 'string' && user === name) || (typeof role === 'string' && roles.indexOf(role) >= 0)
}

function revisionRefusal({ newDoc, oldDoc }: Write): string | undefined {
  const arrived = generationOf(newDoc)
  const known = oldDoc ? parseInt(String(oldDoc._rev), 10) : 0
  if (arrived <= known + 1) return undefined
  return `each change of ${a(newDoc.type)} document must arrive by itself; got revision ${arrived} after ${known}`
}
