import { describe, expect, test } from 'vitest'
import { createTestCouch } from '../support/couchdb.ts'
import { guardedDb, newConfirm, newDevice, tryBulk, tryPut } from './guarded-db.ts'
import { createUser, setSecurity } from './users.ts'

const at = '2026-01-01T00:00:00.000Z'
const hash = {
  password_scheme: 'pbkdf2',
  pbkdf2_prf: 'sha256',
  salt: 'salt',
  derived_key: 'a'.repeat(64),
  iterations: 600_000,
}
const long = 'x'.repeat(1_000_000)

/** A document of a client, by its name, with the beginning of the reason. */
const forged: readonly [string, Record<string, unknown>, string][] = [
  ['no type', { owner: 'a@example.com' }, 'expected a document of type device or confirm, got type nothing'],
  ['another type', { type: 'channel' }, 'expected a document of type device or confirm'],
  ['a type of the language', { type: 'constructor' }, 'expected a document of type device or confirm'],
  ['a type that is no text', { type: ['device'] }, 'expected a document of type device or confirm'],
  ['a type of the engine', { type: 'mail_ledger', mails: [] }, 'expected a document of type device or confirm'],
  ['no state', { ...newDevice, state: undefined }, 'a device document has one of the states'],
  ['a state of the language', { ...newDevice, state: 'toString' }, 'a device document has one of the states'],
  ['a state that is no text', { ...newDevice, state: { a: 1 } }, 'a device document has one of the states'],
  ['a state in capitals', { ...newDevice, state: 'NEW' }, 'a device document has one of the states'],
  ['an empty docstate', { ...newDevice, docstate: {} }, 'the field docstate'],
  ['a docstate of null', { ...newDevice, docstate: null }, 'the field docstate'],
  ['a handled mark', { ...newDevice, docstate: { state: 'new', handled: at } }, 'the field docstate'],
  ['a claim', { ...newConfirm, docstate: { state: 'clicked', claim: { token: 'a' } } }, 'the field docstate'],
  ['a confirmation', { ...newDevice, confirmation: { codes: [] } }, 'confirmation: expected what the sidecar wrote'],
  ['a user', { ...newDevice, user: 'admin' }, 'user: expected what the sidecar wrote'],
  ['a role', { ...newDevice, owner_role: 'owner-of-all' }, 'owner_role: expected what the sidecar wrote'],
  ['an error', { ...newDevice, error: { code: 'a' } }, 'error: expected what the sidecar wrote'],
  ['an unknown field', { ...newDevice, admin: true }, 'expected no fields but'],
  ['an unknown large field', { ...newDevice, note: long }, 'expected no fields but'],
  ['a password', { ...newDevice, password: 'secret' }, 'expected no fields but'],
  ['an attachment', { ...newDevice, _attachments: { a: { data: '', content_type: 'a/b' } } }, 'expected no fields but'],
  ['no owner', { ...newDevice, owner: undefined }, 'owner: expected an email address'],
  ['an owner that is no text', { ...newDevice, owner: ['a@example.com'] }, 'owner: expected an email address'],
  ['two owners', { ...newDevice, owner: 'a@example.com,b@example.com' }, 'owner: expected an email address'],
  ['an owner with a name', { ...newDevice, owner: 'A <a@example.com>' }, 'owner: expected an email address'],
  ['an owner with a header', { ...newDevice, owner: 'a@example.com\r\nBcc: b@x' }, 'owner: expected an email address'],
  ['an owner with a line separator', { ...newDevice, owner: 'a@exa\u2028mple' }, 'owner: expected an email address'],
  ['an owner with a null', { ...newDevice, owner: 'a\u0000@example.com' }, 'owner: expected an email address'],
  ['an owner without an at', { ...newDevice, owner: 'example.com' }, 'owner: expected an email address'],
  ['an owner with two ats', { ...newDevice, owner: 'a@b@example.com' }, 'owner: expected an email address'],
  ['a large owner', { ...newDevice, owner: `${long}@example.com` }, 'owner: expected an email address'],
  ['no device code', { ...newDevice, device_code: undefined }, 'device_code: expected 4 to 32'],
  ['a number as device code', { ...newDevice, device_code: 1234 }, 'device_code: expected 4 to 32'],
  ['a short device code', { ...newDevice, device_code: '123' }, 'device_code: expected 4 to 32'],
  ['a long device code', { ...newDevice, device_code: '1'.repeat(33) }, 'device_code: expected 4 to 32'],
  ['a device code with a line break', { ...newDevice, device_code: '1234\n' }, 'device_code: expected 4 to 32'],
  ['digits of another script', { ...newDevice, device_code: '١٢٣٤' }, 'device_code: expected 4 to 32'],
  ['an empty name', { ...newDevice, name: '' }, 'name: expected 1 to 100 characters'],
  ['a name of null', { ...newDevice, name: null }, 'name: expected 1 to 100 characters'],
  ['a name with a header', { ...newDevice, name: 'a\nSubject: b' }, 'name: expected 1 to 100 characters'],
  ['a large name', { ...newDevice, name: long }, 'name: expected 1 to 100 characters'],
  ['credentials as text', { ...newDevice, credentials: 'secret' }, 'credentials: expected'],
  ['a plain password', { ...newDevice, credentials: { password: 'secret' } }, 'credentials: expected'],
  ['generate and more', { ...newDevice, credentials: { generate: true, name: 'a' } }, 'credentials: expected'],
  ['generate as text', { ...newDevice, credentials: { generate: 'true' } }, 'credentials: expected'],
  ['a weak scheme', { ...newDevice, credentials: { ...hash, password_scheme: 'simple' } }, 'credentials: expected'],
  ['an unknown PRF', { ...newDevice, credentials: { ...hash, pbkdf2_prf: 'md5' } }, 'credentials: expected'],
  ['a PRF of the language', { ...newDevice, credentials: { ...hash, pbkdf2_prf: 'valueOf' } }, 'credentials: expected'],
  [
    'a key in capitals',
    { ...newDevice, credentials: { ...hash, derived_key: 'A'.repeat(64) } },
    'credentials: expected',
  ],
  ['a key of another length', { ...newDevice, credentials: { ...hash, pbkdf2_prf: 'sha' } }, 'credentials: expected'],
  ['a large key', { ...newDevice, credentials: { ...hash, derived_key: 'a'.repeat(64_000) } }, 'credentials: expected'],
  ['a large salt', { ...newDevice, credentials: { ...hash, salt: long } }, 'credentials: expected'],
  ['few iterations', { ...newDevice, credentials: { ...hash, iterations: 999 } }, 'credentials: expected'],
  ['many iterations', { ...newDevice, credentials: { ...hash, iterations: 1e9 } }, 'credentials: expected'],
  ['half an iteration', { ...newDevice, credentials: { ...hash, iterations: 1000.5 } }, 'credentials: expected'],
  ['iterations as text', { ...newDevice, credentials: { ...hash, iterations: '600000' } }, 'credentials: expected'],
  ['roles in credentials', { ...newDevice, credentials: { ...hash, roles: ['_admin'] } }, 'credentials: expected'],
  ['no device id', { ...newConfirm, device_id: undefined }, 'device_id: expected 1 to 200 characters'],
  ['a device id that is no text', { ...newConfirm, device_id: { $gt: '' } }, 'device_id: expected 1 to 200 characters'],
  ['a large confirm code', { ...newConfirm, confirm_code: long }, 'confirm_code: expected 1 to 200 characters'],
  ['an empty confirm code', { ...newConfirm, confirm_code: '' }, 'confirm_code: expected 1 to 200 characters'],
  [
    'the wish for credentials in a confirmation',
    { ...newConfirm, credentials: { generate: true } },
    'credentials: expected',
  ],
  ['a used confirmation', { ...newConfirm, state: 'used' }, 'a new confirm document begins in state clicked'],
]

test(`each of ${forged.length} malformed and forged documents is refused with its reason`, async () => {
  const db = await guardedDb()
  const { couch } = await createUser()
  const docs = forged.map(([name, doc]) => ({ _id: name, ...doc }))
  const answers = await tryBulk(couch, db, docs)
  expect([...answers].map(([name, answer]) => `${name}: ${answer}`)).toEqual(
    forged.map(([name, , reason]) => expect.stringContaining(`${name}: ${reason}`) as string),
  )
  for (const answer of answers.values()) expect(answer.length).toBeLessThan(1000)
})

test('each well-formed document is accepted from a member who is no admin', async () => {
  const db = await guardedDb()
  const { name, couch } = await createUser()
  await setSecurity(createTestCouch(), db.name, { names: [name], roles: [] })
  const keys = { sha: 40, sha224: 56, sha256: 64, sha384: 96, sha512: 128 }
  const docs = [
    { _id: 'plain', ...newDevice },
    { _id: 'named', ...newDevice, name: 'Jürgens 📱 "phone" <3' },
    { _id: 'address', ...newDevice, owner: "o'neil+tag_1@bücher.example", device_code: 'AB-12' },
    { _id: 'generate', ...newDevice, credentials: { generate: true } },
    { _id: 'SHA-1', ...newDevice, credentials: { ...hash, pbkdf2_prf: undefined, derived_key: 'a'.repeat(40) } },
    ...Object.entries(keys).map(([pbkdf2_prf, digits]) => {
      return { _id: pbkdf2_prf, ...newDevice, credentials: { ...hash, pbkdf2_prf, derived_key: 'a'.repeat(digits) } }
    }),
    { _id: 'confirm', ...newConfirm },
    { _id: 'confirm with credentials', ...newConfirm, credentials: hash },
  ]
  expect([...(await tryBulk(couch, db, docs)).values()]).toEqual(docs.map(() => 'fine'))
})

describe('a device that is there', () => {
  /** The device as the sidecar left it, and what a client makes of it. */
  async function change(stored: Record<string, unknown>, changes: Record<string, unknown>): Promise<string> {
    const db = await guardedDb()
    const { couch } = await createUser()
    const doc = { ...newDevice, ...stored, _id: 'd' }
    const _rev = await db.put(doc)
    return tryPut(couch, db, { ...doc, _rev, ...changes })
  }
  const waiting = {
    state: 'confirming',
    confirmation: { codes: [] },
    docstate: { state: 'confirming', timeout_at: at },
  }
  const again = { state: 'new', docstate: undefined }

  test.each([
    ['with all that was there', {}],
    ['without what only the sidecar writes', { confirmation: undefined }],
    ['under another name', { name: 'tablet' }],
  ])('asks for another mail %s', async (_, changes) => {
    expect(await change(waiting, { ...again, ...changes })).toBe('fine')
  })

  test.each([
    ['with another owner', { owner: 'mallory@example.com' }, 'owner: expected it unchanged'],
    ['with another device code', { device_code: '6666' }, 'device_code: expected it unchanged'],
    ['with credentials it did not have', { credentials: hash }, 'credentials: expected it unchanged'],
    ['with a confirmation of its own', { confirmation: { codes: [{}] } }, 'confirmation: expected what the sidecar'],
    ['with a user', { user: 'admin' }, 'user: expected nothing unchanged'],
    ['with the docstate it had', { docstate: waiting.docstate }, 'the field docstate is written by the sidecar'],
    [
      'with another docstate',
      { docstate: { state: 'new', attempts: 0 } },
      'the field docstate is written by the sidecar',
    ],
    ['as another type', { type: 'confirm', state: 'clicked' }, 'a device document keeps its type'],
    ['as no type', { type: undefined }, 'expected a document of type'],
  ])('does not ask for another mail %s', async (_, changes, reason) => {
    expect(await change(waiting, { ...again, ...changes })).toContain(reason)
  })

  test('is not written by a client while a worker has it', async () => {
    const held = { docstate: { state: 'new', claim: { worker: 'a', token: 'b', at, lease_ms: 1000 } } }
    expect(await change(held, again)).toBe('this document is being handled; try again shortly')
    const remnant = { docstate: { ...held.docstate, state: 'confirming' } }
    expect(await change(remnant, again)).toBe('fine')
  })

  test('is deleted by an admin only', async () => {
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

  test('does not make somebody else its owner', async () => {
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

describe('by replication', () => {
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

describe('in a database of somebody else', () => {
  const machines = { order: { paid: { mode: 'safe', create: 'client', next: { paid: 'client' } } } } as const

  test('docstate is forged on no document, of whatever type', async () => {
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

  test('a document of no declared type is deleted by anybody, and becomes a declared one only as a new one would', async () => {
    const db = await guardedDb({ order: { paid: { create: 'client', next: { done: 'sidecar' } }, done: {} } })
    const { couch } = await createUser()
    const note = { _id: 'note', type: 'note' }
    const _rev = await db.put(note)
    expect(await tryPut(couch, db, { ...note, _rev, type: 'order', state: 'done' })).toContain('begins in state paid')
    expect(await tryPut(couch, db, { ...note, _rev, _deleted: true })).toBe('fine')
  })
})
