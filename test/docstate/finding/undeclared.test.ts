/** Documents in states that their machine does not declare, such as renamed or misspelt states. */
import pino from 'pino'
import { expect, test } from 'vitest'
import type { Machines } from '../../../ddocs/machine.ts'
import type { Control } from '../../../sidecar/docstate/control.ts'
import { freshDb } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { startRig, stateOf } from '../rig.ts'

const machines: Machines = { order: { payed: { mode: 'safe', next: { invoiced: 'sidecar' } }, invoiced: {} } }
const invoice = (control: Control) => control.safe('order', 'payed', async (order) => ({ ...order, state: 'invoiced' }))

type Warning = Record<'type' | 'state' | 'declared' | 'doc', string>

function collectWarnings() {
  const warned: Warning[] = []
  return { warned, log: pino({ level: 'warn' }, { write: (line: string) => warned.push(JSON.parse(line) as Warning) }) }
}

test('the resync counts documents in undeclared states and warns once, unless the type has no machine', async () => {
  const db = await freshDb('undeclared')
  for (const _id of ['a', 'b']) await db.put({ _id, type: 'order', state: 'paid' })
  await db.put({ _id: 'c', type: 'photo', state: 'paid' })
  const { warned, log } = collectWarnings()
  const { engine } = await startRig(db, invoice, { machines, resyncMs: 100, log })
  const counted = () => engine.counts.undeclared.get(db.name)
  await eventually(() => expect(counted()).toEqual([{ type: 'order', state: 'paid', count: 2 }]))

  await db.put({ ...(await db.get('a')), state: 'payed' })
  await eventually(() => expect(counted()).toEqual([{ type: 'order', state: 'paid', count: 1 }]))
  expect(warned).toMatchObject([{ type: 'order', state: 'paid', declared: 'payed, invoiced (did you mean payed?)' }])
  await db.put({ ...(await db.get('b')), state: 'payed' })
  await eventually(() => expect(engine.counts.undeclared.size).toBe(0))
})

test('the log warns of the first document in an undeclared state when its row passes', async () => {
  const db = await freshDb('undeclared')
  await db.put({ _id: 'a', type: 'order', state: 'paid' })
  const { warned, log } = collectWarnings()
  const { engine } = await startRig(db, invoice, { machines, resyncMs: 600_000, log })
  await eventually(() => expect(engine.counts.undeclared.size).toBe(1)) // the only resync is over
  for (const _id of ['b', 'c']) await db.put({ _id, type: 'order', state: 'payd' })
  await db.put({ _id: 'd', type: 'order', state: 'payed' })
  await eventually(async () => expect(await stateOf(db, 'd')).toBe('invoiced'))
  expect(warned).toMatchObject([
    { type: 'order', state: 'paid' },
    { doc: 'b', type: 'order', state: 'payd', declared: 'payed, invoiced (did you mean payed?)' },
  ])
})
