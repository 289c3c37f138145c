/** Builds the app's status from the stored data, the documents and the syncs. Pure. */
import { channelsHere, type Here } from './channels/here.ts'
import { isOwn, type ChannelDoc } from './control/control-documents.ts'
import type { View } from './control/view.ts'
import { NO_SYNCS, type Syncs } from './engine.ts'
import { registrationStatus } from './registration/registration.ts'
import { OFF, type ChannelStatus, type Status, type SyncStatus } from './client-status.ts'
import type { Kept } from './store.ts'

/** Status without any data, such as after `destroy`. */
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
  const here = channelsHere(kept, view)
  const syncing = kept.registration?.state === 'active' ? syncs : NO_SYNCS // syncs of a revoked device are ending
  const channels = view.channels.map((channel) => {
    const { _id: id } = channel
    return channelStatus(channel, here(channel), view.subscription(id)?.from, syncing.channels[id] ?? OFF)
  })
  const all = [syncing.control, ...Object.values(syncing.channels)]
  return {
    registration: registrationStatus(kept.registration, syncs.failure),
    online: ![syncs.failure?.code, ...all.map(({ state }) => state)].includes('offline'),
    control: syncing.control,
    channels: channels.sort(byName),
    devices: devices.sort(byName),
  }
}

function channelStatus(
  { _id: id, state, name, owner, members = [], data, error }: ChannelDoc,
  { place, onlyHere, local }: Here,
  from: string | undefined,
  sync: SyncStatus,
): ChannelStatus {
  return {
    ...{ id, name: String(name), owner: String(owner), isOwner: isOwn({ _id: id }), members, state },
    ...(data && { data }),
    ...(state === 'error' && error && { error: { code: error.code, reason: error.reason ?? error.code } }),
    place,
    ...(from !== undefined && { from }),
    onlyHere,
    ...(local && { local: local.name }),
    sync,
  }
}

const byName = (one: { readonly name: string }, other: { readonly name: string }): number =>
  one.name.localeCompare(other.name)
