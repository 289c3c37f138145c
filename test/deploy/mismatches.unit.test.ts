import { expect, test } from 'vitest'
import { controlMachines } from '../../ddocs/machines.ts'
import { listMismatches } from '../../sidecar/deploy/list-mismatches.ts'

const ddoc = { _id: '_design/docstate', machines: controlMachines }

test('handlers of the declared states and modes match', () => {
  const handlers = [
    { type: 'device', state: 'new', mode: 'unsafe' },
    { type: 'confirm', state: 'clicked', mode: 'safe' },
  ] as const
  expect(listMismatches(ddoc, handlers, controlMachines)).toEqual([])
})

test('a handler for an undeclared type matches, because nothing guards it', () => {
  expect(listMismatches(ddoc, [{ type: 'constructor', state: 'paid', mode: 'safe' }], {})).toEqual([])
  expect(listMismatches({ _id: '_design/docstate' }, [{ type: 'order', state: 'paid', mode: 'safe' }], {})).toEqual([])
})

test.each([
  [{ type: 'device', state: 'new', mode: 'safe' }, 'declares that state as unsafe'],
  [{ type: 'device', state: 'expired', mode: 'safe' }, 'declares that state as not handled'],
  [{ type: 'device', state: 'toString', mode: 'safe' }, 'has no such state'],
] as const)('a handler for an undeclared state or mode is reported: %o', (handler, reason) => {
  const [mismatch] = listMismatches(ddoc, [handler], controlMachines)
  expect(mismatch).toContain(`handler for ${handler.type} in state ${handler.state}`)
  expect(mismatch).toContain(reason)
})

test('a machine that the design document lacks, or declares differently, is reported', () => {
  const handler = { type: 'order', state: 'paid', mode: 'safe' } as const
  const machines = { order: { paid: { mode: 'safe', next: { done: 'sidecar' } }, done: {} } } as const
  const faults = (order: object) =>
    listMismatches({ _id: '_design/docstate', machines: { order } }, [handler], machines)
  expect(faults(machines.order)).toEqual([])
  expect(faults({ ...machines.order, late: {} })[0]).toContain('declares another machine of order')
  expect(listMismatches(ddoc, [handler], machines)[0]).toContain('declares no machine of order')
})

test.each([[null], [true], [7], ['x'], [[]], [[null]], [{}], [{ toString: 1 }]])(
  '%j in the machines counts as a mismatch',
  (garbage) => {
    const handler = { type: 'order', state: 'paid', mode: 'safe' } as const
    const paid = { mode: 'safe', next: { done: 'sidecar' } } as const
    const faults = (machines: unknown) =>
      listMismatches({ _id: '_design/docstate', machines }, [handler], { order: { paid, done: {} } })
    expect(faults(garbage)).toEqual([expect.stringContaining('declares no machine of order')])
    for (const order of [garbage, { paid: garbage, done: {} }, { paid: { ...paid, next: garbage }, done: {} }]) {
      expect(faults({ order })).toEqual([expect.stringMatching(/declares (another|no) machine of order/)])
    }
    // The guard ignores timeouts.
    expect(faults({ order: { paid: { ...paid, timeout: garbage }, done: {} } })).toEqual([])
    for (const state of [garbage, { mode: garbage }]) {
      const free = listMismatches({ _id: '_design/docstate', machines: { order: { paid: state } } }, [handler], {})
      expect(free).toEqual([expect.stringContaining('deploy the machines of this version')])
    }
  },
)

test('a database without the design document is reported', () => {
  expect(listMismatches(undefined, [], {})).toEqual([expect.stringContaining('run the deploy')])
})
