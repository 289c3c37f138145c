/**
 * What stands in a user's database, as it follows from what is true. Pure: each function gets the document that is
 * there, and returns the one that should be, or undefined where it should stay as it is.
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

/** Ids of all documents that may be there. */
export function copyIdsOf(records: readonly StoredRecord[], account: StoredAccount): string[] {
  const channels = records.map((record) => copyIdOf(record, account))
  return [...account.devices.map(userNameOf), ...channels, ...channels.map(subscriptionIdOf)]
}

/** All documents that are to be written. `there` has what is there of them, by id. */
export function copiesOf(
  { devices, records }: DesiredState,
  account: StoredAccount,
  syncUrl: string,
  there: ReadonlyMap<string, StoredDoc>,
  hidden: ReadonlySet<string> = new Set(),
): Doc[] {
  const ofChannels = records.flatMap((record) => {
    const before = there.get(copyIdOf(record, account))
    const copy = channelCopy(record, account, syncUrl, before, hidden.has(record._id))
    const now = copy ?? before
    const subscription = now && subscriptionCopy(record, account, now, there.get(subscriptionIdOf(now._id)))
    return [copy, subscription]
  })
  const ofDevices = devices.map((device) => deviceCopy(device, there.get(userNameOf(device._id))))
  return [...ofDevices, ...ofChannels].filter((doc) => doc !== undefined)
}

function deviceCopy(device: StoredDevice, there: StoredDoc | undefined): Doc | undefined {
  const { _id, state, name, owner, owner_role } = device
  if (state === 'revoked') return there && there.state !== 'revoked' ? next(there, 'revoked') : undefined
  if (state !== 'active') return undefined
  if (there?.state === 'revoked' && !isHandled(there)) return undefined // its own handler sees to that
  const user = userNameOf(_id)
  const copy = { type: 'device', state, ...(name !== undefined && { name }), owner, owner_role, user, device_id: _id }
  return differing({ ...copy, _id: user }, there)
}

/** Of an active device: the user's document may be older than the device. */
const isHandled = ({ docstate }: StoredDoc): boolean => isObject(docstate) && docstate.handled !== undefined

/** Under which id a user sees a channel: the owner's is his own document. */
const copyIdOf = (record: StoredRecord, { address }: StoredAccount): string =>
  record.owner === address ? record.document : record._id

/** Of an owner's channel. One that is in no state, which no device writes, is mended. */
const isWaiting = ({ state }: Doc): boolean =>
  ['new', 'accepted', 'ready'].includes(String(state)) || !Object.hasOwn(userMachines.channel, String(state))

function channelCopy(
  record: StoredRecord,
  account: StoredAccount,
  syncUrl: string,
  there: StoredDoc | undefined,
  isHidden: boolean,
): Doc | undefined {
  const { name, owner, owner_role, data, database, state, left = [] } = record
  const isOwner = owner === account.address
  if (isOpen(record) && isMember(record, account.address) && !isHidden) {
    const given = { database, syncpoint: syncpointOf(syncUrl, database), owner_role }
    const members = isOwner ? record.members : record.members.filter((one) => isMember(record, one))
    const gone = isOwner ? left.filter((one) => members.includes(one)) : []
    if (!isOwner || there?.type !== 'channel') {
      const told = { ...(data && { data }), ...(gone.length > 0 && { left: gone }), ...given }
      const copy = { type: 'channel', state: 'ready', name, owner, members, ...told }
      return differing({ ...copy, _id: copyIdOf(record, account) }, there)
    }
    if (!isWaiting(there) || !isAsRequested(record, there as Channel & StoredDoc)) return undefined
    const { left: _before, ...request } = there as Channel & StoredDoc
    return differing({ ...request, ...(gone.length > 0 && { left: gone }), ...given, state: 'ready' }, there)
  }
  if (there?.type !== 'channel') return undefined
  if (state === 'closed' && isOwner) {
    return isToNotify(there, record) ? { ...next(there, 'closed'), owner_role } : undefined // who may make it anew
  }
  if (there.state !== 'ready') return undefined
  if (state === 'closed') return next(there, 'closed') // of whichever life it tells
  return isOpen(record) ? next(there, 'removed') : undefined
}

/** After the channel's copy. */
function subscriptionCopy(
  record: StoredRecord,
  { address }: StoredAccount,
  now: Doc,
  there: StoredDoc | undefined,
): Doc | undefined {
  if (there && (there.type !== 'subscription' || there.state === 'left')) return undefined
  if (now.state === 'closed' || now.state === 'removed') {
    const isTold = there?.state === 'ended' && there.withdrawn === true
    return there && !isTold ? { ...next(there, 'ended'), withdrawn: true } : undefined
  }
  if (now.state !== 'ready') return undefined
  if (there && there.withdrawn !== true) return undefined // who has ended it meant it
  const given = there && givenBack(next(there, String(there.state)))
  if (given && given.state !== 'ended') return given
  const isOwner = record.owner === address
  const fields: Subscription = {
    ...{ _id: subscriptionIdOf(now._id), type: 'subscription', state: isOwner ? 'active' : 'invite' },
    ...{ channel_id: now._id, ...(!isOwner && { from: record.owner }) },
  }
  return { ...given, ...fields }
}

const givenBack = ({ withdrawn: _withdrawn, ...doc }: Doc & { withdrawn?: unknown }): Doc => doc

/** The document in another state, without what was said of the one that it leaves. */
function next({ docstate: _entry, error: _error, _conflicts, ...doc }: StoredDoc, state: string): Doc {
  return { ...(doc as Doc), state }
}

/** Undefined where it is there already. */
function differing(wanted: Doc, there: StoredDoc | undefined): Doc | undefined {
  const { docstate: _entry, error: _error, _conflicts, ...doc } = wanted
  const made = { ...(doc as Doc), ...(there && { _rev: there._rev }) }
  const { _conflicts: _beside, ...known } = there ?? {}
  return same(made, known) ? undefined : made
}
