import { expect, test } from 'vitest'
import { retryBy } from '../../../sidecar/docstate/operator/actions.ts'

const action = retryBy('ann', Date.UTC(2030, 0, 1))
const retried = { at: '2030-01-01T00:00:00.000Z', by: 'ann' }

test.each([
  ['parked', { state: 'paid', parked: { at: 'then', reason: 'lost' } }],
  ['that waits for its next try', { state: 'paid', retry_at: '2030-01-02T00:00:00.000Z', attempts: 3 }],
])('a document %s is brought back, and says by whom', (_, docstate) => {
  const doc = { _id: 'o', _rev: '3-a', type: 'order', state: 'paid', docstate }
  expect(action(doc)).toEqual({ ...doc, docstate: { state: 'paid', retried } })
})

test('one in error goes back to where it failed, and says by whom', () => {
  const docstate = { state: 'error', failed_in: 'paid', entry: '1-a' }
  const doc = { _id: 'o', _rev: '3-a', type: 'order', state: 'error', error: { code: 'x' }, docstate }
  expect(action(doc)).toEqual({
    ...{ _id: 'o', _rev: '3-a', type: 'order', state: 'paid' },
    docstate: { state: 'paid', entry: '1-a', retried },
  })
})

test('one that neither failed nor waits is left alone', () => {
  expect(action({ _id: 'o', _rev: '1-a', type: 'order', state: 'paid' })).toBeUndefined()
})
