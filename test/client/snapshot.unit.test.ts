import { expect, test } from 'vitest'
import type { ChannelDoc } from '../../client/src/control/control-documents.ts'
import type { View } from '../../client/src/control/view.ts'
import type { Syncs } from '../../client/src/engine.ts'
import type { Registration } from '../../client/src/registration/registration.ts'
import { snapshotOf } from '../../client/src/snapshot.ts'

const photos: ChannelDoc = {
  ...{
    _id: 'photos',
    _rev: '1-a',
    type: 'channel',
    state: 'ready',
    name: 'photos',
    owner: 'ann@example.com',
    database: 'photos-1',
  },
}
const view = { channels: [photos], devices: [], subscription: () => undefined } as Partial<View> as View

const keptAs = (state: Registration['state']) => ({
  registration: {
    ...{ id: 'device-1', secret: 's', password: 'p', deviceCode: '12', owner: 'ann@example.com', state },
  },
  locals: [],
  count: 0,
})

const stillEnding: Syncs = {
  control: { state: 'offline', read: 1, written: 0, pending: 0 },
  channels: { photos: { state: 'syncing', read: 1, written: 0, pending: 3 } },
}

test.each([
  ['active', 'offline', 'syncing', false],
  ['revoked', 'off', 'off', true],
] as const)('the syncs of a device that is %s', (state, control, channel, online) => {
  const status = snapshotOf(keptAs(state), view, stillEnding)
  expect(status.registration.state).toBe(state)
  expect([status.control.state, status.channels[0]!.sync.state, status.online]).toEqual([control, channel, online])
})
