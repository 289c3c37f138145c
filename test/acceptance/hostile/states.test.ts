/** A client forges every state of every machine, in a new document or over another state. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { controlMachines } from '../../../ddocs/machines.ts'
import type { Machine } from '../../../ddocs/machine.ts'
import { uniqueName } from '../../support/couchdb.ts'
import { newDevice } from '../registration.ts'
import { openStage, refusalOf, type Stage } from './stage.ts'

let stage: Stage
beforeAll(async () => (stage = await openStage()))
afterAll(() => stage.close())

const documents: Record<string, (state: string) => Record<string, unknown> & { _id: string }> = {
  device: (state) => newDevice({ state }),
  confirm: (state) => {
    const codes = { device_id: 'd', device_code: '1234', confirm_code: 'x' }
    return { _id: uniqueName('confirm'), type: 'confirm', state, ...codes }
  },
}

/** Keeps the sidecar from handling a document that the test put into this state. */
const untouched = (state: string) => ({
  docstate: { state, parked: { at: '2026-01-01T00:00:00.000Z', reason: 'test' } },
})

describe.each(Object.entries<Machine>(controlMachines))('%s', (type, machine) => {
  const states = Object.keys(machine)
  const make = documents[type] ?? ((state: string) => ({ _id: uniqueName(type), type, state }))

  test.each(states.filter((state) => machine[state]!.create !== 'client'))(
    'a client cannot create the document in state %s',
    async (state) => {
      const refusal = await refusalOf(stage.control.member, make(state))
      expect(refusal).toMatch(
        new RegExp(`^forbidden: a new ${type} document begins in state (new|clicked|\\(none.*\\)); got "${state}"`),
      )
    },
  )

  const pairs = states.flatMap((from) => states.map((to) => [from, to] as const))
  const forged = pairs.filter(([from, to]) => machine[from]!.next?.[to] !== 'client')
  test.each(forged)('a client cannot change the state from %s to %s', async (from, to) => {
    const { control } = stage
    const doc = make(from)
    await control.admin.put({ ...doc, ...untouched(from) })
    const { _rev } = await control.admin.get(doc._id)
    const refusal = await refusalOf(control.member, { ...doc, _rev, state: to })
    expect(refusal).toMatch(
      new RegExp(`^forbidden: an? ${type} document in state ${from} may be written in state .*; got "${to}"`),
    )
    expect((await control.admin.get(doc._id))._rev).toBe(_rev)
  })

  test.each(['', 'New', 'nonsense', 'constructor', '__proto__', 'toString'])(
    'a document cannot have the state %j',
    async (state) => {
      const refusal = await refusalOf(stage.control.member, make(state))
      expect(refusal).toMatch(new RegExp(`^forbidden: an? ${type} document has one of the states `))
    },
  )
})

test('a valid device still registers', () => stage.registerGoodDevice())
