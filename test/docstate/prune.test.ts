import { expect, test } from 'vitest'
import type { Database } from '../../sidecar/couch/database.ts'
import { freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startRig } from './rig.ts'

/** With this way to it, the last revision first, a letter for each. */
const leaf = (way: string, fields: object) => {
  const ids = [...way].map((letter) => letter.repeat(32))
  return { ...fields, _id: 'o', _rev: `${ids.length}-${ids[0]}`, _revisions: { start: ids.length, ids } }
}

const claim = { worker: 'dead', token: 'dead', at: new Date(0).toISOString(), lease_ms: 1000 }
const held = (entry: string) => {
  const docstate = { state: 'paid', entry: `1-${entry.repeat(32)}`, claim }
  return { type: 'order', state: 'paid', docstate }
}

/** A document that was invoiced, with this leaf beside it. */
async function setUp(beside: ReturnType<typeof leaf>): Promise<Database> {
  const db = await freshDb('prune')
  await db.merge([leaf('cba', { type: 'order', state: 'invoiced' }), beside])
  await startRig(db, (control) => control.unsafe('order', 'paid', async () => undefined), { leaseMs: 1000 })
  await db.put({ _id: 'p', type: 'order', state: 'paid' })
  return db
}

const conflictsOf = async (db: Database) => (await db.get('o', { conflicts: true }))._conflicts

test('a claim that nobody takes back is taken out from beside what came of its entry', async () => {
  const db = await setUp(leaf('da', held('a')))
  await eventually(async () => expect(await conflictsOf(db)).toBeUndefined())
  expect(await db.get('o')).toMatchObject({ state: 'invoiced' })
})

test.each([
  ['is a client’s', leaf('da', { type: 'order', state: 'paid' })],
  ['is of another entry', leaf('de', held('e'))],
  ['has gone on', leaf('da', { type: 'order', state: 'shipped' })],
])('a conflict that %s stays', async (_, beside) => {
  const db = await setUp(beside)
  await expect(
    eventually(async () => expect(await conflictsOf(db)).toBeUndefined(), { within: 2500 }),
  ).rejects.toThrow()
})
