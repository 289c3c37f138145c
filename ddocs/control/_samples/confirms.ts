/** Confirmations from the confirmation page and from the device itself. */
const confirm = { type: 'confirm', device_id: 'new', device_code: '1234' }

export default [
  { ...confirm, _id: 'clicked', state: 'clicked', confirm_code: 'abcdefghijklmnopqrstuv' },
  { ...confirm, _id: 'used', state: 'used' },
  { ...confirm, _id: 'error', state: 'error', error: { code: 'refused', reason: 'wrong' } },
]
