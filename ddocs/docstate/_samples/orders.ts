/** Documents as the sidecar leaves them in a tracked database. */
const at = '2026-01-01T00:00:00.000Z'

export default [
  { _id: 'new', type: 'order', state: 'paid' },
  { _id: 'retry', type: 'order', state: 'paid', docstate: { state: 'paid', attempts: 1, retry_at: at } },
  { _id: 'remnant', type: 'order', state: 'invoiced', docstate: { state: 'paid', handled: at } },
  { _id: 'garbage', type: 1, state: [], docstate: 'claimed' },
]
