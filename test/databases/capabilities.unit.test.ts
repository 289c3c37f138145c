import { expect, test } from 'vitest'
import type { Machines } from '../../ddocs/machine.ts'
import { IN_CONFLICT } from '../../sidecar/docstate/classify.ts'
import { createControl } from '../../sidecar/docstate/control.ts'
import { joinHandlers } from '../../sidecar/docstate/handlers.ts'
import { newUserId, userDatabaseOf } from '../../sidecar/accounts/account-names.ts'
import { capabilitiesOf, hasCapability } from '../../sidecar/databases/capabilities.ts'
import { writesEvents } from '../../sidecar/global-changes/global-changes-feature.ts'

const free = createControl<Machines>({})
free.safe('order', 'paid', () => Promise.resolve())
const control = joinHandlers([createControl<Machines>({ letter: { sent: {} } }), free])
const users = createControl<Machines>({})
users.safe('channel', 'new', () => Promise.resolve())
const tables = { control: createControl({}), user: users, docstate: control }
const options = capabilitiesOf({ controlDb: 'control', databases: ['orders-*'] }, tables)
const member = (given: object) => ({ id: 'a', options: given }) as unknown as Parameters<typeof hasCapability>[0]

test.each([
  ['a state with a handler', 'orders-1', 'order', 'paid', true],
  ['a state without a handler', 'orders-1', 'order', 'sent', false],
  ['a state in a database that the worker does not serve', 'letters', 'order', 'paid', false],
  ['a conflict of a type with a handler, in any state', 'orders-1', 'order', IN_CONFLICT, true],
  ['a conflict of a type with a machine only', 'orders-1', 'letter', IN_CONFLICT, true],
  ['a conflict of another type', 'orders-1', 'stamp', IN_CONFLICT, false],
  ['a conflict in a database that the worker does not serve', 'letters', 'order', IN_CONFLICT, false],
  ['the database of a user', userDatabaseOf(newUserId('control')), 'channel', 'new', true],
  ['the database of a user of another control database', userDatabaseOf(newUserId('other')), 'channel', 'new', false],
  ['a conflict in the control database', 'control', 'order', IN_CONFLICT, false],
])('a worker has a capability for %s', (_, database, type, state, expected) => {
  expect(hasCapability(member(options), database, { type, state })).toBe(expected)
})

test.each([
  {},
  { databases: null },
  { databases: { names: ['orders-*'], types: 'order' } },
  { control: null, databases: 7 },
])('a membership entry of another program grants no capability: %j', (given) => {
  expect(hasCapability(member(given), 'orders-1', { type: 'order', state: IN_CONFLICT })).toBe(false)
})

test('a worker counts as a writer of database events if its options name the database', () => {
  expect(writesEvents('global_changes')(member({ global_changes: 'global_changes' }))).toBe(true)
  expect(writesEvents('other')(member({ global_changes: 'global_changes' }))).toBe(false)
  expect(writesEvents('global_changes')(member({}))).toBe(false)
})
