/** What a stranger can change with write and replication access to the control database. */
import { expect, test } from 'vitest'
import { createTestCouch } from '../support/couchdb.ts'
import { guardedDb, newConfirm, newDevice, tryBulk, tryPut } from './guarded-db.ts'
import { createUser } from './users.ts'

test('a stranger cannot extend a branch of a device until it becomes the winner', async () => {
  const db = await guardedDb()
  const { couch } = await createUser()
  let rev = await db.put({ _id: 'd', ...newDevice })
  for (const state of ['new', 'confirming', 'confirmed', 'active']) {
    rev = await db.put({ _id: 'd', _rev: rev, ...newDevice, state, user: 'u', owner_role: 'owner-of-d' })
  }
  const mine = { _id: 'd', ...newDevice, owner: 'mallory@example.com' }
  const branch = `1-${'f'.repeat(32)}`
  const revisions = { start: 1, ids: ['f'.repeat(32)] }
  await tryBulk(couch, db, [{ ...mine, _rev: branch, _revisions: revisions }], { new_edits: false })
  const answer = await tryPut(couch, db, { ...mine, _rev: branch })
  expect(answer).toMatch(/has not seen this device yet|in state active/) // pouchdb-server checks the winner
  expect(await db.get('d')).toMatchObject({ _rev: rev, state: 'active', owner: newDevice.owner })
})

test('a stranger can neither overwrite the sidecar’s documents nor use their ids', async () => {
  const db = await guardedDb()
  const { couch } = await createUser()
  const ledger = {
    _id: 'ledger',
    type: 'mail_ledger',
    state: 'counting',
    mails: [{ key: 'k', at: '2026-01-01T00:00:00.000Z' }],
  }
  const _rev = await createTestCouch().db(db.name).put(ledger)
  for (const doc of [newConfirm, newDevice]) {
    expect(await tryPut(couch, db, { ...doc, _id: 'ledger', _rev })).toContain('a mail_ledger document keeps its type')
    expect(await tryPut(couch, db, { ...doc, _id: 'mails:0123456789abcdef' })).toContain('the sidecar’s own')
    expect(await tryPut(couch, db, { ...doc, _id: 'guesses:0123456789abcdef' })).toContain('the sidecar’s own')
    expect(await tryPut(couch, db, { ...doc, _id: 'config:global_changes' })).toContain('the sidecar’s own')
    expect(await tryPut(couch, db, { ...doc, _id: 'worker:sidecar:evil' })).toContain('the sidecar’s own')
  }
})

test('the control database also guards documents of the user’s own machines', async () => {
  const order = { paid: { mode: 'safe', create: 'client', next: { done: 'sidecar' } }, done: {} } as const
  const db = await guardedDb({ order }, 'control')
  const { couch } = await createUser()
  expect(await tryPut(couch, db, { _id: 'o', type: 'order', state: 'paid' })).toBe('fine')
  expect(await tryPut(couch, db, { _id: 'p', type: 'order', state: 'done' })).toContain('begins in state paid')
  expect(await tryPut(couch, db, { _id: 'n', type: 'note' })).toContain('got type "note"')
})
