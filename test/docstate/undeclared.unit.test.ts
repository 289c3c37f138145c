import pino from 'pino'
import { expect, test } from 'vitest'
import type { Machines } from '../../ddocs/machine.ts'
import { isUndeclared, undeclaredIn, UndeclaredLog, type UndeclaredCount } from '../../sidecar/docstate/undeclared.ts'

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

test('the log warns once of each type and state, and again if it comes back', () => {
  const warned: unknown[] = []
  const log = pino({ base: null, timestamp: false }, { write: (line: string) => warned.push(JSON.parse(line)) })
  let counted: readonly UndeclaredCount[] = []
  const undeclaredLog = new UndeclaredLog({ machines: () => machines, counted: () => counted, log })
  const resync = (now: readonly UndeclaredCount[]) => {
    undeclaredLog.resynced(now)
    counted = now
  }
  const paid = { type: 'order', state: 'payed', count: 2 }
  for (const _id of ['a', 'b']) undeclaredLog.passed({ _id, type: 'order', state: 'payed' })
  resync([paid, { type: 'note', state: 'new', count: 1 }])
  undeclaredLog.passed({ _id: 'c', type: 'order', state: 'payed' })
  resync([paid])
  expect(warned).toMatchObject([
    { doc: 'a', type: 'order', state: 'payed', declared: 'paid, invoiced (did you mean paid?)' },
    { count: 1, type: 'note', state: 'new', declared: 'kept' },
  ])
  resync([])
  undeclaredLog.passed({ _id: 'd', type: 'order', state: 'payed' })
  expect(warned[2]).toMatchObject({ doc: 'd', state: 'payed' })
})
