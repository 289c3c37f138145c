import { expect, test } from 'vitest'
import type { Machines } from '../../ddocs/machine.ts'
import { isUndeclared, undeclaredIn } from '../../sidecar/docstate/undeclared.ts'

const machines: Machines = { order: { paid: { mode: 'safe' }, invoiced: {} }, note: { kept: {} } }

test.each([
  ['order', 'paid', false],
  ['order', 'payed', true],
  ['order', 'toString', true],
  ['toString', 'call', false],
  ['photo', 'uploaded', false],
  ['order', 'error', false],
  ['note', 'error', true],
])('a document of type %s in state %s is undeclared: %s', (type, state, expected) => {
  expect(isUndeclared(machines, type, state)).toBe(expected)
})

test.each([null, { order: null }, { order: { paid: null } }, { order: 'paid' }, ['order']])(
  'invalid machines in a design document cause no error: %j',
  (garbage) => expect(() => isUndeclared((garbage ?? {}) as Machines, 'order', 'payed')).not.toThrow(),
)

test('the counts of undeclared documents are summed for each type and state', () => {
  const counts = [
    { type: 'order', state: 'paid', count: 1 },
    { type: 'order', state: 'payed', status: 'ready', count: 2 },
    { type: 'order', state: 'payed', status: 'parked', count: 3 },
  ]
  expect(undeclaredIn(counts, machines)).toEqual([{ type: 'order', state: 'payed', count: 5 }])
})
