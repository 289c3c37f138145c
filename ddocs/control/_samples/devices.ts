/** Devices in each shape that occurs in the control database. */
const device = {
  type: 'device',
  owner: 'owner@example.com',
  device_code: '1234',
  name: 'phone',
  credentials: {
    password_scheme: 'pbkdf2',
    pbkdf2_prf: 'sha256',
    salt: '00',
    derived_key: '3da54a7c1b4ad7ef4a2b5a3ac3fc4e3ea1b2a1fcb1c7c9c43d1d8e7f9f0a1b2c',
    iterations: 600000,
  },
}
const at = '2026-01-01T00:00:00.000Z'

export default [
  { ...device, _id: 'new', state: 'new' },
  { ...device, _id: 'generate', state: 'new', credentials: { generate: true } },
  { ...device, _id: 'inbox', state: 'new', secret_sha256: '0'.repeat(64), inbox: { rev: '1-a' } },
  {
    ...device,
    _id: 'claimed',
    state: 'new',
    docstate: { state: 'new', claim: { worker: 'a', token: 'b', at, lease_ms: 1 } },
  },
  { ...device, _id: 'retry', state: 'new', docstate: { state: 'new', attempts: 1, retry_at: at } },
  { ...device, _id: 'parked', state: 'new', docstate: { state: 'new', parked: { at, reason: 'lost' } } },
  { ...device, _id: 'confirming', state: 'confirming', docstate: { state: 'confirming', timeout_at: at } },
  { _id: 'active', type: 'device', state: 'active', user: 'device-1', owner_role: 'owner-1' },
  { _id: 'revoked', type: 'device', state: 'revoked', docstate: { state: 'revoked', handled: at } },
  { _id: 'error', type: 'device', state: 'error', error: { code: 'a', reason: 'b', at } },
  { _id: 'garbage', type: 'device', state: 'new', docstate: { state: 'new', claim: 1, parked: null, retry_at: {} } },
]
