/** Documents in states that their machine does not declare, such as renamed or misspelt states. */
import pino from 'pino'
import { expect, test } from 'vitest'
import type { Machines } from '../../../ddocs/machine.ts'
import type { Control } from '../../../sidecar/docstate/control.ts'
import { freshDb } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { startRig } from '../rig.ts'

const machines: Machines = { order: { payed: { mode: 'safe', next: { invoiced: 'sidecar' } }, invoiced: {} } }
const invoice = (control: Control) => control.safe('order', 'payed', async (order) => ({ ...order, state: 'invoiced' }))

test('the resync counts documents in undeclared states and warns once, unless the type has no machine', async () => {
  const db = await freshDb('undeclared')
  for (const _id of ['a', 'b']) await db.put({ _id, type: 'order', state: 'paid' })
  await db.put({ _id: 'c', type: 'photo', state: 'paid' })
  const warned: { type?: string; state?: string; declared?: string }[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => warned.push(JSON.parse(line) as object) })
  const { engine } = await startRig(db, invoice, { machines, resyncMs: 100, log })
  const counted = () => engine.counts.undeclared.get(db.name)
  await eventually(() => expect(counted()).toEqual([{ type: 'order', state: 'paid', count: 2 }]))

  await db.put({ ...(await db.get('a')), state: 'payed' })
  await eventually(() => expect(counted()).toEqual([{ type: 'order', state: 'paid', count: 1 }]))
  expect(warned).toMatchObject([
    { type: 'order', state: 'paid', count: 2, declared: 'payed, invoiced (did you mean payed?)' },
  ])
  await db.put({ ...(await db.get('b')), state: 'payed' })
  await eventually(() => expect(engine.counts.undeclared.size).toBe(0))
})
