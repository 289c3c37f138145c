import { expect, test } from 'vitest'
import { retryBy } from '../../../sidecar/docstate/operator/actions.ts'

const action = retryBy('ann', Date.UTC(2030, 0, 1))
const retried = { at: '2030-01-01T00:00:00.000Z', by: 'ann' }

test.each([
  ['that is parked', { state: 'paid', parked: { at: 'then', reason: 'lost' } }],
  ['that waits for its next attempt', { state: 'paid', retry_at: '2030-01-02T00:00:00.000Z', attempts: 3 }],
])('a retry of a document %s makes it ready and records the operator', (_, docstate) => {
  const doc = { _id: 'o', _rev: '3-a', type: 'order', state: 'paid', docstate }
  expect(action(doc)).toEqual({ ...doc, docstate: { state: 'paid', retried } })
})

test('a retry returns a document in error to its failed state and records the operator', () => {
  const docstate = { state: 'error', failed_in: 'paid', entry: '1-a' }
  const doc = { _id: 'o', _rev: '3-a', type: 'order', state: 'error', error: { code: 'x' }, docstate }
  expect(action(doc)).toEqual({
    ...{ _id: 'o', _rev: '3-a', type: 'order', state: 'paid' },
    docstate: { state: 'paid', entry: '1-a', retried },
  })
})

test('a retry does not change a ready document', () => {
  expect(action({ _id: 'o', _rev: '1-a', type: 'order', state: 'paid' })).toBeUndefined()
})
