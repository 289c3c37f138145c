/** The status that the app gets, from what stands where. Pure. */
import { asNow, localOf } from './channels/locals.ts'
import { exceptionOf, placeOf } from './channels/wanted.ts'
import { isOwn, type ChannelDoc } from './control/documents.ts'
import type { View } from './control/view.ts'
import type { Syncs } from './engine.ts'
import { registrationStatus } from './registration/registration.ts'
import { OFF, type ChannelStatus, type Status } from './status.ts'
import type { Kept } from './store.ts'

/** Where nothing is, or nothing any more. */
export const NOTHING: Status = {
  registration: { state: 'none' },
  online: true,
  control: OFF,
  channels: [],
  devices: [],
}

export function snapshotOf(kept: Kept, view: View, syncs: Syncs): Status {
  const user = kept.registration?.user
  const devices = view.devices.map(({ _id, name, state }) => {
    return { user: _id, name: name ?? _id, state, isThis: _id === user }
  })
  const all = [syncs.control, ...Object.values(syncs.channels)]
  return {
    registration: registrationStatus(kept.registration, syncs.failure),
    online: ![syncs.failure?.code, ...all.map(({ state }) => state)].includes('offline'),
    control: syncs.control,
    channels: view.channels.map((channel) => channelStatus(channel, kept, view, syncs)).sort(byName),
    devices: devices.sort(byName),
  }
}

function channelStatus(channel: ChannelDoc, kept: Kept, view: View, syncs: Syncs): ChannelStatus {
  const { _id: id, state, name, owner, members = [], data, error } = channel
  const user = kept.registration?.user
  const subscription = view.subscription(id)
  const local = localOf(kept, channel)
  return {
    ...{ id, name: String(name), owner: String(owner), isOwner: isOwn(channel), members, state },
    ...(data && { data }),
    ...(state === 'error' && error && { error: { code: error.code, reason: error.reason ?? error.code } }),
    place: placeOf(asNow(kept, channel), subscription, user),
    ...(subscription?.from !== undefined && { from: subscription.from }),
    onlyHere: exceptionOf(subscription, user) !== undefined,
    ...(local && { local: local.name }),
    sync: syncs.channels[id] ?? OFF,
  }
}

const byName = (one: { readonly name: string }, other: { readonly name: string }): number =>
  one.name.localeCompare(other.name)
