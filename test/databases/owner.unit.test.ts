import { expect, test } from 'vitest'
import type { Machines } from '../../ddocs/machine.ts'
import { ownerOf } from '../../sidecar/databases/jobs.ts'
import { createControl, type Control } from '../../sidecar/docstate/control.ts'

function ownerFor(machines: Machines, register: (control: Control<Machines>) => void = () => undefined): string {
  const control = createControl(machines)
  register(control)
  return ownerOf(control)
}

const timeout = { afterMs: 1000, next: 'late' }
const paid = (control: Control<Machines>) => control.safe('order', 'paid', (doc) => Promise.resolve(doc))
const late = (control: Control<Machines>) => control.safe('order', 'late', (doc) => Promise.resolve(doc))

test('workers with the same states share their checkpoints, in any order of registration', () => {
  const machines: Machines = { order: { paid: { mode: 'safe' }, late: { mode: 'safe' } } }
  const both = ownerFor(machines, (control) => (paid(control), late(control)))
  expect(ownerFor(machines, (control) => (late(control), paid(control)))).toBe(both)
  const longer = { order: { paid: { timeout: { ...timeout, afterMs: 2000 } }, late: {} } }
  expect(ownerFor(longer)).toBe(ownerFor({ order: { paid: { timeout }, late: {} } }))
})

test('workers that search for different documents have separate checkpoints', () => {
  const ended: Machines = { order: { paid: { mode: 'safe', timeout }, late: {} } }
  const endless: Machines = { order: { paid: { mode: 'safe' }, late: {} } }
  const resolver = (control: Control<Machines>) => control.resolve('order', ({ ours }) => ours)
  const owners = [
    ownerFor({}),
    ownerFor({}, resolver),
    ownerFor(endless),
    ownerFor(endless, paid),
    ownerFor(ended),
    ownerFor(ended, paid),
    ownerFor({ order: { payed: { mode: 'safe' }, late: {} } }),
    ownerFor({ order: { paid: { renamed: 'late' }, late: {} } }),
  ]
  expect(new Set(owners).size).toBe(owners.length)
})
