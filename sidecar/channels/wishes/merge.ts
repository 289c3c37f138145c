import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../../ddocs/lib/document.ts'
import type { Doc } from '../../couch/documents.ts'
import { normaliseAddress } from '../../devices/names.ts'
import { mergeFields, type Conflict, type Resolver } from '../../docstate/conflicts/merge.ts'
import { closeOf, isEnding } from '../ending.ts'

/** What an owner wishes of a channel. */
const WISHES = ['members', 'data'] as const
/** States in which the sidecar has seen them, or has refused them. */
const SEEN = ['accepted', 'ready', 'error']

/**
 * Two documents of one channel: of the later life, if one of them is of an earlier one; closed, if one of them says so; else
 * with the wishes of both.
 */
export const mergeChannel: Resolver = (conflict) => ofLaterLife(conflict) ?? ending(conflict) ?? withWishes(conflict)

/** A channel that was closed and made again has another database. What is done to the one before, late, is not done to it. */
function ofLaterLife({ ours, theirs, base }: Conflict): Doc | undefined {
  const [one, other] = [ours.database, theirs.database]
  if (one === undefined || other === undefined || one === other) return undefined
  if (base?.database === one) return theirs
  if (base?.database === other) return ours
  const open = isEnding(ours) ? theirs : ours // which is later, the record knows: it is looked at again
  return SEEN.includes(String(open.state)) ? askedAnew(open) : open
}

/** Whoever closes a channel means it, whatever else was done to it meanwhile. Undefined if nobody did. */
function ending({ ours, theirs, base }: Conflict): Doc | undefined {
  const [first, second] = [ours, theirs].filter(isEnding)
  if (!first) return undefined
  if (!second) return base && isEnding(base) ? [ours, theirs].find((doc) => !isEnding(doc)) : first // made again
  const ended = second.state === 'closed' ? second : first
  return ended.state === 'closed' ? ended : { ...ended, close: closeOf(first, second) }
}

/**
 * What the owner has changed while the sidecar wrote the document, that has not seen: so it is asked for anew. (It would
 * not be if a wish that was seen stayed `new`: nobody could tell the two.) Without their base nobody knows what was
 * changed: what the sidecar has seen counts, and a member who was removed does not come back.
 */
function withWishes(conflict: Conflict): Doc {
  const { ours, theirs, base } = conflict
  if (!base) return [ours, theirs].find(({ state }) => SEEN.includes(String(state))) ?? ours
  const members = mergeMembers(ours.members, theirs.members, base.members)
  const merged = { ...mergeFields(conflict), ...(members && { members }) } as Doc
  const isWished = WISHES.some((field) => !isDeepStrictEqual(merged[field], ours[field]))
  return isWished && SEEN.includes(String(merged.state)) ? askedAnew(merged) : merged
}

function askedAnew({ error: _error, ...doc }: Doc & { error?: unknown }): Doc {
  return { ...doc, state: 'new' }
}

/** Who is on both lists, or was added to one of them. Undefined where one of them is none. */
function mergeMembers(ours: unknown, theirs: unknown, base: unknown): readonly string[] | undefined {
  const [one, other, before] = [ours, theirs, base].map(listOf)
  if (!one || !other || !before) return undefined
  const has = (list: readonly string[], member: string) =>
    list.some((listed) => normaliseAddress(listed) === normaliseAddress(member))
  const kept = one.filter((member) => has(other, member) || !has(before, member))
  return [...kept, ...other.filter((member) => !has(one, member) && !has(before, member))]
}

const listOf = (members: unknown = []): readonly string[] | undefined =>
  Array.isArray(members) && members.every((member) => typeof member === 'string') ? members : undefined

/** A subscription: exceptions for several devices may have been made by each of them. */
export const mergeSubscription: Resolver = (conflict) => {
  const [ours, theirs, base] = [conflict.ours, conflict.theirs, conflict.base].map(devicesOf)
  const changed = Object.entries(theirs!).filter(([device, state]) => base![device] !== state)
  const gone = Object.keys(base!).filter((device) => !(device in theirs!))
  const devices = Object.fromEntries(
    Object.entries({ ...ours, ...Object.fromEntries(changed) }).filter(([device]) => !gone.includes(device)),
  )
  const { devices: _devices, ...merged } = mergeFields(conflict) as Doc & { devices?: unknown }
  return { ...merged, ...(Object.keys(devices).length > 0 && { devices }) }
}

const devicesOf = (doc: Doc | undefined): Readonly<Record<string, unknown>> =>
  isObject(doc?.devices) ? doc.devices : {}
