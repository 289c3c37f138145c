import { expect, expectTypeOf, test } from 'vitest'
import { defineMachines, type HandledState, type Machine, type NextState } from '../../ddocs/machine.ts'
import { controlMachines, userMachines, type ControlMachines } from '../../ddocs/machines.ts'
import { createControl } from '../../sidecar/docstate/control.ts'

test('a handler may return only its own state, and states that the table lets the sidecar write', () => {
  expectTypeOf<NextState<ControlMachines, 'device', 'new'>>().toEqualTypeOf<
    'new' | 'confirming' | 'confirmed' | 'error'
  >()
  expectTypeOf<NextState<ControlMachines, 'device', 'revoked'>>().toEqualTypeOf<'revoked'>()
  expectTypeOf<NextState<ControlMachines, 'confirm', 'clicked'>>().toEqualTypeOf<'clicked' | 'used' | 'error'>()

  const control = createControl(controlMachines)
  control.unsafe('device', 'new', (doc) => Promise.resolve({ ...doc, state: 'confirming' as const }))
  // @ts-expect-error a device is not active before its owner has confirmed it
  control.safe('device', 'confirmed', (doc) => Promise.resolve({ ...doc, state: 'expired' as const }))
  // @ts-expect-error only the owner revokes
  control.safe('confirm', 'clicked', (doc) => Promise.resolve({ ...doc, state: 'revoked' as const }))
  expect(control.registrations).toHaveLength(3)
})

test('a handler may register only for a declared state, in its declared mode', () => {
  expectTypeOf<HandledState<ControlMachines, 'device', 'safe'>>().toEqualTypeOf<
    'confirmed' | 'active' | 'revoked' | 'forgotten'
  >()
  expectTypeOf<HandledState<ControlMachines, 'device', 'unsafe'>>().toEqualTypeOf<'new'>()

  const control = createControl(controlMachines)
  // @ts-expect-error sending a mail twice is not safe
  expect(() => control.safe('device', 'new', () => Promise.resolve())).toThrow('safe handler for device in state new')
  // @ts-expect-error no handler runs for an expired device
  expect(() => control.safe('device', 'expired', () => Promise.resolve())).toThrow('device in state expired')
  // @ts-expect-error no such type
  expect(() => control.safe('gadget', 'new', () => Promise.resolve())).toThrow('expected a type that has a machine')
})

test('a table with an undeclared target does not compile', () => {
  defineMachines({ order: { paid: { next: { invoiced: 'sidecar' } }, invoiced: {} } })
  // @ts-expect-error no state "invoicd"
  defineMachines({ order: { paid: { next: { invoicd: 'sidecar' } }, invoiced: {} } })
  // @ts-expect-error no state "late"
  defineMachines({ order: { paid: { timeout: { afterMs: 1, next: 'late' } } } })
  defineMachines({ order: { paid: { renamed: 'settled' }, settled: {} } })
  // @ts-expect-error no state "setled"
  defineMachines({ order: { paid: { renamed: 'setled' }, settled: {} } })
  // @ts-expect-error "paid" is an old name
  defineMachines({ order: { paid: { renamed: 'settled' }, settled: {}, open: { next: { paid: 'client' } } } })
  // @ts-expect-error no writer "anyone"
  defineMachines({ order: { paid: { next: { paid: 'anyone' } } } })
})

test('every state is reachable, and every timeout is a transition of the sidecar', () => {
  for (const machine of [...Object.values(controlMachines), ...Object.values(userMachines)]) {
    const states = Object.entries(machine as Machine)
    const targets = states.flatMap(([, { next = {} }]) => Object.keys(next))
    for (const [state, { create, next = {}, timeout }] of states) {
      expect(create !== undefined || targets.includes(state), state).toBe(true)
      if (timeout) expect(next, state).toHaveProperty(timeout.next, 'sidecar')
    }
  }
})
