/** Documents of a user's control database. */
const at = '2026-01-01T00:00:00.000Z'
const channel = { type: 'channel', name: 'photos', owner: 'owner@example.com', members: ['bob@example.com'] }
const subscription = { type: 'subscription', channel_id: 'photos' }

export default [
  { _id: 'device-1', type: 'device', state: 'active', user: 'device-1', owner_role: 'owner-1', device_id: '1' },
  { _id: 'device-2', type: 'device', state: 'revoked', docstate: { state: 'revoked', handled: at } },
  { ...channel, _id: 'photos', state: 'new' },
  { ...channel, _id: 'channel:1', state: 'ready', database: 'channel-1', owner_role: 'owner-2' },
  { ...channel, _id: 'old', state: 'closing', close: 'archive' },
  { ...subscription, _id: 'subscription:photos', state: 'active', devices: { 'device-1': 'paused' } },
  { ...subscription, _id: 'subscription:gone', state: 'error', error: { code: 'a', reason: 'b', at } },
  { _id: 'app', type: 'setting' },
]
