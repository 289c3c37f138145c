import { expect, test } from 'vitest'
import { controlMachines } from '../../ddocs/machines.ts'
import type { Machine } from '../../ddocs/machine.ts'
import type { Doc } from '../../sidecar/couch/documents.ts'
import { createTestCouch, uniqueName } from '../support/couchdb.ts'
import { guardedDb, newConfirm, newDevice, tryBulk } from './guarded-db.ts'
import { createAnonymous, createUser } from './users.ts'

/**
 * Written by hand from the design, not from the table: the transitions of a client, and the extra ones of the owner.
 * Only admins may make any other transition.
 */
const allowed = {
  device: {
    client: ['- > new', 'new > new', 'confirming > new', 'expired > new', 'error > new'],
    owner: ['new', 'confirming', 'confirmed', 'active', 'expired', 'error'].map((state) => `${state} > revoked`),
  },
  confirm: { client: ['- > clicked'], owner: [] },
} as const

const NOWHERE = '-'

const machines: Readonly<Record<string, Machine>> = controlMachines
const shapes: Readonly<Record<string, object>> = { device: newDevice, confirm: newConfirm }

/** Every transition from a state, or from nothing, to a state: `new > active`. */
function* ways(type: string): Generator<{ way: string; from: string; to: string }> {
  const states = Object.keys(machines[type]!)
  for (const from of [NOWHERE, ...states]) {
    for (const to of states) yield { way: `${from} > ${to}`, from, to }
  }
}

async function createWriters() {
  const role = uniqueName('owner')
  const device = await createUser()
  const sibling = await createUser([role])
  const other = await createUser([uniqueName('owner')])
  return {
    owned: { user: device.name, owner_role: role },
    writers: {
      admin: createTestCouch(),
      device: device.couch,
      sibling: sibling.couch,
      other: other.couch,
      anonymous: createAnonymous(),
    },
  }
}

const mayWrite = (writer: string, type: keyof typeof allowed, way: string): boolean => {
  const { client, owner } = allowed[type]
  if (writer === 'admin' || client.some((known) => known === way)) return true
  return (writer === 'device' || writer === 'sibling') && owner.some((known) => known === way)
}

test.each(['device', 'confirm'] as const)(
  'a %s may change state only as the table allows, for each kind of user',
  async (type) => {
    const db = await guardedDb()
    const { owned, writers } = await createWriters()
    const fields = { ...shapes[type], ...(type === 'device' && owned) }
    const seen = (state: string) => ({ ...fields, docstate: { state, attempts: 1 } }) // as the sidecar writes it

    for (const [writer, couch] of Object.entries(writers)) {
      const all = [...ways(type)].map((entry) => ({ ...entry, _id: `${writer} ${entry.way}` }))
      const before = all
        .filter(({ from }) => from !== NOWHERE)
        .map(({ _id, from }) => ({ ...seen(from), _id, state: from }))
      await tryBulk(writers.admin, db, before)
      const revs = new Map((await db.getMany(before.map(({ _id }) => _id))).map(({ _id, _rev }) => [_id, _rev]))
      const after = all.map(({ _id, to }): Doc => {
        const _rev = revs.get(_id)
        return _rev === undefined ? { ...shapes[type], _id, state: to } : { ...fields, _id, _rev, state: to }
      })

      const answers = await tryBulk(couch, db, after)
      const expected = all.filter(({ way }) => mayWrite(writer, type, way)).map(({ _id }) => _id)
      const accepted = [...answers].filter(([, answer]) => answer === 'fine').map(([id]) => id)
      expect(accepted).toEqual(expected)
      for (const { _id, to } of all) {
        const answer = answers.get(_id)!
        if (answer !== 'fine')
          expect(answer, _id).toMatch(new RegExp(`(begins in state|may be written in state) .*; got "${to}"$`))
      }
    }
  },
)

test('the same rules guard a machine of another application', async () => {
  const db = await guardedDb({
    order: {
      cart: { create: 'client', next: { cart: 'client', paid: 'client' } },
      paid: { mode: 'unsafe', next: { invoiced: 'sidecar', error: 'sidecar' } },
      invoiced: {},
      error: { next: { paid: 'client' } },
    },
  })
  const { couch } = await createUser()
  await db.put({ _id: 'done', type: 'order', state: 'invoiced' })
  const answers = await tryBulk(couch, db, [
    { _id: 'a', type: 'order', state: 'cart', total: 1 },
    { _id: 'b', type: 'order', state: 'paid' },
    { _id: 'c', type: 'note', text: 'whatever', state: 'paid' },
    { _id: 'd', text: 'no type at all' },
  ])
  expect(answers).toEqual(
    new Map([
      ['a', 'fine'],
      ['b', 'a new order document begins in state cart; got "paid"'],
      ['c', 'fine'],
      ['d', 'fine'],
    ]),
  )
  const { _rev } = await db.get('a')
  expect(await tryBulk(couch, db, [{ _id: 'a', _rev, type: 'order', state: 'paid', total: 2 }])).toEqual(
    new Map([['a', 'fine']]),
  )
})
