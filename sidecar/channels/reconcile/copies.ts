/**
 * Computes the documents of a user's database from the desired state. Pure: each function gets the current document,
 * and returns the desired one, or undefined if the current one should stay.
 */
import { isObject } from '../../../ddocs/lib/document.ts'
import { same } from '../../../ddocs/lib/same.ts'
import { userMachines } from '../../../ddocs/machines.ts'
import type { StoredAccount } from '../../accounts/account-documents.ts'
import { syncpointOf } from '../../accounts/account-names.ts'
import type { Doc, StoredDoc } from '../../couch/documents.ts'
import type { StoredDevice } from '../../devices/device-documents.ts'
import { userNameOf } from '../../devices/device-names.ts'
import { isMember, isOpen, type Channel, type StoredRecord, type Subscription } from '../channel-documents.ts'
import { isToNotify } from '../ending.ts'
import { subscriptionIdOf } from '../channel-names.ts'
import { isAsRequested } from '../shape.ts'
import type { DesiredState } from './desired-state.ts'

/** Ids of all copies that may exist in a user's database. */
export function copyIdsOf(records: readonly StoredRecord[], account: StoredAccount): string[] {
  const channels = records.map((record) => copyIdOf(record, account))
  return [...account.devices.map(userNameOf), ...channels, ...channels.map(subscriptionIdOf)]
}

/** All documents to write. `current` has the existing documents, by id. */
export function copiesOf(
  { devices, records }: DesiredState,
  account: StoredAccount,
  syncUrl: string,
  current: ReadonlyMap<string, StoredDoc>,
  hidden: ReadonlySet<string> = new Set(),
): Doc[] {
  const ofChannels = records.flatMap((record) => {
    const before = current.get(copyIdOf(record, account))
    const copy = channelCopy(record, account, syncUrl, before, hidden.has(record._id))
    const now = copy ?? before
    const subscription = now && subscriptionCopy(record, account, now, current.get(subscriptionIdOf(now._id)))
    return [copy, subscription]
  })
  const ofDevices = devices.map((device) => deviceCopy(device, current.get(userNameOf(device._id))))
  return [...ofDevices, ...ofChannels].filter((doc) => doc !== undefined)
}

function deviceCopy(device: StoredDevice, current: StoredDoc | undefined): Doc | undefined {
  const { _id, state, name, owner, owner_role } = device
  if (state === 'revoked') return current && current.state !== 'revoked' ? next(current, 'revoked') : undefined
  if (state !== 'active') return undefined
  if (current?.state === 'revoked' && !isHandled(current)) return undefined // its own handler revokes the device
  const user = userNameOf(_id)
  const copy = { type: 'device', state, ...(name !== undefined && { name }), owner, owner_role, user, device_id: _id }
  return differing({ ...copy, _id: user }, current)
}

/** Whether a revoked copy was handled. If its device is active, the copy is older than the device. */
const isHandled = ({ docstate }: StoredDoc): boolean => isObject(docstate) && docstate.handled !== undefined

/** Id of a channel in the user's database. An owner has the original document instead of a copy. */
const copyIdOf = (record: StoredRecord, { address }: StoredAccount): string =>
  record.owner === address ? record.document : record._id

/** Whether an owner's channel waits to be `ready`. This also repairs an unknown state, which no device writes. */
const isWaiting = ({ state }: Doc): boolean =>
  ['new', 'accepted', 'ready'].includes(String(state)) || !Object.hasOwn(userMachines.channel, String(state))

function channelCopy(
  record: StoredRecord,
  account: StoredAccount,
  syncUrl: string,
  current: StoredDoc | undefined,
  isHidden: boolean,
): Doc | undefined {
  const { name, owner, owner_role, data, database, state, left = [] } = record
  const isOwner = owner === account.address
  if (isOpen(record) && isMember(record, account.address) && !isHidden) {
    const given = { database, syncpoint: syncpointOf(syncUrl, database), owner_role }
    const members = isOwner ? record.members : record.members.filter((one) => isMember(record, one))
    const gone = isOwner ? left.filter((one) => members.includes(one)) : []
    if (!isOwner || current?.type !== 'channel') {
      const fields = { ...(data && { data }), ...(gone.length > 0 && { left: gone }), ...given }
      const copy = { type: 'channel', state: 'ready', name, owner, members, ...fields }
      return differing({ ...copy, _id: copyIdOf(record, account) }, current)
    }
    if (!isWaiting(current) || !isAsRequested(record, current as Channel & StoredDoc)) return undefined
    const { left: _before, ...request } = current as Channel & StoredDoc
    return differing({ ...request, ...(gone.length > 0 && { left: gone }), ...given, state: 'ready' }, current)
  }
  if (current?.type !== 'channel') return undefined
  if (state === 'closed' && isOwner) {
    // `owner_role`: the owner's devices may make the channel again.
    return isToNotify(current, record) ? { ...next(current, 'closed'), owner_role } : undefined
  }
  if (current.state !== 'ready') return undefined
  if (state === 'closed') return next(current, 'closed') // also a copy of an earlier life
  return isOpen(record) ? next(current, 'removed') : undefined
}

/** The subscription to write, given the channel's copy (`now`). */
function subscriptionCopy(
  record: StoredRecord,
  { address }: StoredAccount,
  now: Doc,
  current: StoredDoc | undefined,
): Doc | undefined {
  if (current && (current.type !== 'subscription' || current.state === 'left')) return undefined
  if (now.state === 'closed' || now.state === 'removed') {
    const isWithdrawn = current?.state === 'ended' && current.withdrawn === true
    return current && !isWithdrawn ? { ...next(current, 'ended'), withdrawn: true } : undefined
  }
  if (now.state !== 'ready') return undefined
  if (current && current.withdrawn !== true) return undefined // the user's own choice stays
  const given = current && givenBack(next(current, String(current.state)))
  if (given && given.state !== 'ended') return given
  const isOwner = record.owner === address
  const fields: Subscription = {
    ...{ _id: subscriptionIdOf(now._id), type: 'subscription', state: isOwner ? 'active' : 'invite' },
    ...{ channel_id: now._id, ...(!isOwner && { from: record.owner }) },
  }
  return { ...given, ...fields }
}

const givenBack = ({ withdrawn: _withdrawn, ...doc }: Doc & { withdrawn?: unknown }): Doc => doc

/** The document in another state, without the fields of the state that it leaves. */
function next({ docstate: _entry, error: _error, _conflicts, ...doc }: StoredDoc, state: string): Doc {
  return { ...(doc as Doc), state }
}

/** The document to write; undefined if the current one is equal. */
function differing(wanted: Doc, current: StoredDoc | undefined): Doc | undefined {
  const { docstate: _entry, error: _error, _conflicts, ...doc } = wanted
  const made = { ...(doc as Doc), ...(current && { _rev: current._rev }) }
  const { _conflicts: _beside, ...known } = current ?? {}
  return same(made, known) ? undefined : made
}
