import { describe, expect, test } from 'vitest'
import { guardedDb, hash, newDevice, tryBulk, tryPut } from './guarded-db.ts'
import { createUser } from './users.ts'

const at = '2026-01-01T00:00:00.000Z'

describe('changes to an existing device', () => {
  /** Writes a client's change to a device as the sidecar left it. */
  async function change(stored: Record<string, unknown>, changes: Record<string, unknown>): Promise<string> {
    const db = await guardedDb()
    const { couch } = await createUser()
    const doc = { ...newDevice, ...stored, _id: 'd' }
    const _rev = await db.put(doc)
    return tryPut(couch, db, { ...doc, _rev, ...changes })
  }
  const waiting = {
    state: 'confirming',
    owner_role: 'owner-1',
    confirmation: { codes: [] },
    docstate: { state: 'confirming', timeout_at: at },
  }
  const again = { state: 'new', docstate: undefined }

  test.each([
    ['with all fields unchanged', {}],
    ['without the fields that only the sidecar writes', { confirmation: undefined, owner_role: undefined }],
    ['under another name', { name: 'tablet' }],
  ])('a client may request another mail %s', async (_, changes) => {
    expect(await change(waiting, { ...again, ...changes })).toBe('fine')
  })

  test.each([
    ['with another owner', { owner: 'mallory@example.com' }, 'owner: expected it unchanged'],
    ['with another device code', { device_code: '6666' }, 'device_code: expected it unchanged'],
    ['with added credentials', { credentials: hash }, 'credentials: expected it unchanged'],
    ['with an added secret', { secret_sha256: 'a'.repeat(64) }, 'secret_sha256: expected it unchanged'],
    ['with the field of the inbox', { inbox: { rev: '9-a' } }, 'inbox: expected what the sidecar wrote'],
    ['with a forged confirmation', { confirmation: { codes: [{}] } }, 'confirmation: expected what the sidecar'],
    ['with another role', { owner_role: 'owner-2' }, 'owner_role: expected "owner-1" unchanged'],
    ['with a user', { user: 'admin' }, 'user: expected nothing unchanged'],
    [
      'with its old docstate under the new state',
      { docstate: { ...waiting.docstate, state: 'new' } },
      'the field docstate is written by the sidecar',
    ],
    [
      'with another docstate',
      { docstate: { state: 'new', attempts: 0 } },
      'the field docstate is written by the sidecar',
    ],
    ['as another type', { type: 'confirm', state: 'clicked' }, 'a device document keeps its type'],
    ['without a type', { type: undefined }, 'expected a document of type'],
  ])('a client may not request another mail %s', async (_, changes, reason) => {
    expect(await change(waiting, { ...again, ...changes })).toContain(reason)
  })

  test('a client may request another mail with the docstate of the state it leaves', async () => {
    expect(await change(waiting, { ...again, docstate: waiting.docstate })).toBe('fine')
  })

  test('a client may not write a device that a worker has claimed', async () => {
    const held = { docstate: { state: 'new', claim: { worker: 'a', token: 'b', at, lease_ms: 1000 } } }
    expect(await change(held, again)).toBe('this document is being handled; try again shortly')
    const remnant = { docstate: { ...held.docstate, state: 'confirming' } }
    expect(await change(remnant, again)).toBe('fine')
  })

  test('only an admin may delete a device', async () => {
    expect(await change({}, { _deleted: true })).toContain('deleted by an admin only')
    const db = await guardedDb()
    const { couch } = await createUser()
    expect(
      (await tryBulk(couch, db, [{ _id: 'unknown', _rev: '1-a', _deleted: true }], { new_edits: false })).get(
        'unknown',
      ),
    ).toContain('deleted by an admin only')
    const rev = await db.put({ ...newDevice, _id: 'd' })
    await db.remove('d', rev)
    expect(await db.find('d')).toBeUndefined()
  })

  test('a client may not change the owner of a device, and only the owner may revoke the device', async () => {
    const db = await guardedDb()
    const device = await createUser()
    const other = await createUser(['thief'])
    const active = { ...newDevice, _id: 'd', state: 'active', user: device.name, owner_role: 'owner-1' }
    const _rev = await db.put(active)
    expect(await tryPut(other.couch, db, { ...active, _rev, state: 'revoked', owner_role: 'thief' })).toContain(
      'revoked (by its owner)',
    )
    expect(await tryPut(device.couch, db, { ...active, _rev, state: 'revoked', owner_role: 'thief' })).toContain(
      'owner_role: expected',
    )
    expect(await tryPut(device.couch, db, { ...active, _rev, state: 'revoked' })).toBe('fine')
  })
})

describe('device documents by replication', () => {
  test('a branch beside the history of a device is refused', async () => {
    const db = await guardedDb()
    const { couch } = await createUser()
    const first = await db.put({ ...newDevice, _id: 'd' })
    await db.put({ ...newDevice, _id: 'd', _rev: first, state: 'active' })
    const hashOf = (rev: string) => rev.slice(rev.indexOf('-') + 1)
    const branches = [
      { ...newDevice, _id: 'd', _rev: '9-fff', owner: 'mallory@example.com' },
      { ...newDevice, _id: 'd', _rev: '4-ddd', _revisions: { start: 4, ids: ['ddd', 'ccc', 'bbb', hashOf(first)] } },
      { ...newDevice, _id: 'd', _rev: '9-eee', state: 'active' },
    ]
    for (const branch of branches) {
      expect((await tryBulk(couch, db, [branch], { new_edits: false })).get('d'), branch._rev).not.toBe('fine')
    }
    expect(await db.get('d', { conflicts: true })).toMatchObject({ state: 'active', owner: newDevice.owner })
  })

  test('a new device is accepted', async () => {
    const db = await guardedDb()
    const { couch } = await createUser()
    const device = { ...newDevice, _id: 'd', _rev: '1-abc', _revisions: { start: 1, ids: ['abc'] } }
    expect((await tryBulk(couch, db, [device], { new_edits: false })).get('d')).toBe('fine')
    expect((await db.get('d'))._rev).toBe('1-abc')
  })
})

describe('documents of types that the machines do not declare', () => {
  const machines = { order: { paid: { mode: 'safe', create: 'client', next: { paid: 'client' } } } } as const

  test('a client may not forge docstate on a document of any type', async () => {
    const db = await guardedDb(machines)
    const { couch } = await createUser()
    const docstate = { state: 'a', handled: at }
    await db.put({ _id: 'note', type: 'note', state: 'a', docstate })
    const { _rev } = await db.get('note')
    const note = { _id: 'note', _rev, type: 'note', state: 'a' }
    expect(await tryPut(couch, db, { _id: 'new', type: 'note', state: 'a', docstate })).toContain('docstate')
    expect(await tryPut(couch, db, { ...note, docstate: { state: 'a', handled: 'now' } })).toContain('docstate')
    expect(await tryPut(couch, db, { ...note, state: 'b', docstate })).toContain('docstate')
    expect(await tryPut(couch, db, { ...note, docstate: { handled: at, state: 'a' }, text: 'edited' })).toBe('fine')
  })

  test('an undeclared document may be deleted, and follows the rules for new ones when it gets a declared type', async () => {
    const db = await guardedDb({ order: { paid: { create: 'client', next: { done: 'sidecar' } }, done: {} } })
    const { couch } = await createUser()
    const note = { _id: 'note', type: 'note' }
    const _rev = await db.put(note)
    expect(await tryPut(couch, db, { ...note, _rev, type: 'order', state: 'done' })).toContain('begins in state paid')
    expect(await tryPut(couch, db, { ...note, _rev, _deleted: true })).toBe('fine')
  })
})
