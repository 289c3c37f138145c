import { describe, expect, test } from 'vitest'
import type { Machine, Machines } from '../../ddocs/machine.ts'
import { controlMachines, userMachines } from '../../ddocs/machines.ts'
import { checkMachines, listDoubts } from '../../sidecar/docstate/check-machines.ts'
import type { Mode } from '../../sidecar/docstate/types.ts'

const paid = { mode: 'unsafe', create: 'client', next: { invoiced: 'sidecar' } } as const
const order: Machine = { paid, invoiced: {} }
const handler = (type: string, state: string, mode: Mode = 'safe') => ({ type, state, mode })

describe('invalid machines', () => {
  test.each([
    [
      'next names an unknown state',
      { paid: { ...paid, next: { invoicd: 'sidecar' } }, invoiced: {} },
      ['the machine of order: state paid: next: expected one of paid, invoiced; got invoicd (did you mean invoiced?)'],
    ],
    [
      'timeout names an unknown state',
      { paid: { ...paid, timeout: { afterMs: 1, next: 'late' } }, invoiced: {} },
      ['the machine of order: state paid: timeout.next: expected one of paid, invoiced; got late'],
    ],
    [
      'next names a property of the prototype',
      { paid: { ...paid, next: { constructor: 'sidecar' } } },
      ['got constructor'],
    ],
    ['it has no states', {}, ['the machine of order: expected at least one state']],
    ['it is not an object', 'paid', ['the machine of order: ']],
    ['a state is not an object', { paid: null }, ['the machine of order: paid: ']],
    ['the mode is misspelt', { paid: { mode: 'usafe' } }, ['the machine of order: paid.mode: ']],
    [
      'a writer is misspelt',
      { paid: { create: 'clinet', next: { paid: 'sidcar' } } },
      ['paid.create: ', 'paid.next.paid: '],
    ],
    [
      'a key is misspelt',
      { paid: { nxt: { paid: 'client' } } },
      ['the machine of order: paid: Unrecognized key: "nxt"'],
    ],
    [
      'a timeout is not a number of milliseconds',
      { paid: { timeout: { afterMs: '24h', next: 'paid' } } },
      ["paid.timeout: expected { afterMs, next }, or { at, next } with the name of the field, got { afterMs: '24h'"],
    ],
    [
      'the field of a timeout begins with _',
      { paid: { timeout: { at: '_rev', next: 'paid' } } },
      ['paid.timeout.at: expected the name of a field'],
    ],
    [
      'a state is renamed to an unknown state or to a renamed state',
      { paid: { renamed: 'payed' }, due: { renamed: 'paid' }, invoiced: { next: { paid: 'client' } } },
      [
        'state paid: renamed: expected one of invoiced; got payed',
        'state due: renamed: expected one of invoiced; got paid',
        'state invoiced: next: expected one of invoiced; got paid',
      ],
    ],
    [
      'a renamed state has other fields',
      { paid: { renamed: 'invoiced', mode: 'safe' }, invoiced: {} },
      ['the machine of order: paid: expected only renamed'],
    ],
    ['all its states are renamed', { a: { renamed: 'b' }, b: { renamed: 'a' } }, ['expected at least one state']],
  ])('a machine is refused if %s', (_, machine, expected) => {
    const faults = checkMachines({ order: machine } as unknown as Machines)
    expect(faults).toHaveLength(expected.length)
    for (const [i, fault] of expected.entries()) expect(faults[i]).toContain(fault)
  })

  test('all faults of all machines are reported at once', () => {
    const wrong = { paid: { next: { a: 'sidecar', b: 'sidecar' } } } as const
    expect(checkMachines({ order: wrong, bill: wrong })).toHaveLength(4)
    expect(checkMachines(null as unknown as Machines)).toHaveLength(1)
  })
})

test.each([{ order }, {}, controlMachines, userMachines] as Machines[])(
  'valid machines have no faults: %#',
  (machines) => {
    expect(checkMachines(machines)).toEqual([])
  },
)

describe('warnings about machines', () => {
  const of = (machine: Machine, ...registrations: ReturnType<typeof handler>[]) =>
    listDoubts({ machines: { order: machine }, registrations })
  const takesPaid = handler('order', 'paid', 'unsafe')

  test('a valid machine with all its handlers causes no warning', () => {
    expect(of(order, takesPaid)).toEqual([])
    const errors = { ...order, error: { next: { paid: 'client' } } } as const
    expect(of(errors, takesPaid), 'a handled state may always fail into error').toEqual([])
    expect(of({ open: { next: { closed: 'client' } }, closed: {} }), 'made by admins').toEqual([])
    const ring = { on: { next: { off: 'client' } }, off: { next: { on: 'client' } } } as const
    expect(of(ring), 'made by admins, in any state').toEqual([])
    expect(of({ ...order, legacy: { create: 'sidecar', next: { paid: 'sidecar' } } }, takesPaid)).toEqual([])
  })

  test('a state that no document can reach causes a warning, also in a cycle of such states', () => {
    const island = { a: { next: { b: 'sidecar' } }, b: { next: { a: 'sidecar' } } } as const
    expect(of({ ...order, ...island }, takesPaid)).toEqual([
      expect.stringContaining('the machine of order: no document can reach state a:'),
      expect.stringContaining('the machine of order: no document can reach state b:'),
    ])
    expect(of({ open: { create: 'client' }, error: {} })).toEqual([expect.stringContaining('reach state error')])
  })

  test('a state that only a timeout reaches causes no warning', () => {
    const timed = { open: { create: 'client', timeout: { afterMs: 1, next: 'late' } }, late: {} } as const
    expect(of(timed)).toEqual([])
  })

  test('a handled state without a next state causes a warning, unless the machine declares an empty next', () => {
    const stays = { paid: { mode: 'unsafe', create: 'client' }, invoiced: { create: 'sidecar' } } as const
    expect(of(stays, takesPaid)).toEqual([
      expect.stringContaining('the machine of order: no document can leave state paid, although it has a handler:'),
    ])
    expect(of({ ...stays, paid: { ...stays.paid, next: {} } }, takesPaid)).toEqual([])
  })

  test('a state with a declared mode and without a handler causes a warning', () => {
    expect(of(order)).toEqual([
      expect.stringContaining('the machine of order declares state paid as unsafe, and no handler here takes it'),
    ])
  })

  test('a handler for a type with a name similar to a declared type causes a warning', () => {
    const free = [handler('oder', 'paid'), handler('photo', 'uploaded')]
    expect(of(order, takesPaid, ...free)).toEqual([
      expect.stringContaining(
        'safe handler for oder in state paid: no machine of oder is declared (did you mean order?)',
      ),
    ])
  })
})
