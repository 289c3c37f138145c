import { expect, test } from 'vitest'
import { createTestCouch } from '../support/couchdb.ts'
import { guardedDb, hash, newConfirm, newDevice, tryBulk } from './guarded-db.ts'
import { createUser, setSecurity } from './users.ts'

const at = '2026-01-01T00:00:00.000Z'
const long = 'x'.repeat(1_000_000)

/** A document of a client: its name, its fields, the start of the reason. */
const forged: readonly [string, Record<string, unknown>, string][] = [
  ['no type', { owner: 'a@example.com' }, 'expected a document of type device or confirm, got type nothing'],
  ['another type', { type: 'channel' }, 'expected a document of type device or confirm'],
  ['a type named constructor', { type: 'constructor' }, 'expected a document of type device or confirm'],
  ['a type that is an array', { type: ['device'] }, 'expected a document of type device or confirm'],
  ['a type of the engine', { type: 'mail_ledger', mails: [] }, 'a mail_ledger document has one of the states'],
  [
    'a state of the engine',
    { type: 'mail_ledger', state: 'counting', mails: [] },
    'a new mail_ledger document begins in state (none',
  ],
  ['no state', { ...newDevice, state: undefined }, 'a device document has one of the states'],
  ['a state named toString', { ...newDevice, state: 'toString' }, 'a device document has one of the states'],
  ['a state that is an object', { ...newDevice, state: { a: 1 } }, 'a device document has one of the states'],
  ['a state in upper case', { ...newDevice, state: 'NEW' }, 'a device document has one of the states'],
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
  ['an owner that is an array', { ...newDevice, owner: ['a@example.com'] }, 'owner: expected an email address'],
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
  [
    'generate with another field',
    { ...newDevice, credentials: { generate: true, name: 'a' } },
    'credentials: expected',
  ],
  ['generate as text', { ...newDevice, credentials: { generate: 'true' } }, 'credentials: expected'],
  ['a weak scheme', { ...newDevice, credentials: { ...hash, password_scheme: 'simple' } }, 'credentials: expected'],
  ['an unknown PRF', { ...newDevice, credentials: { ...hash, pbkdf2_prf: 'md5' } }, 'credentials: expected'],
  ['a PRF named valueOf', { ...newDevice, credentials: { ...hash, pbkdf2_prf: 'valueOf' } }, 'credentials: expected'],
  [
    'a key in upper case',
    { ...newDevice, credentials: { ...hash, derived_key: 'A'.repeat(64) } },
    'credentials: expected',
  ],
  ['a key of another length', { ...newDevice, credentials: { ...hash, pbkdf2_prf: 'sha' } }, 'credentials: expected'],
  ['a large key', { ...newDevice, credentials: { ...hash, derived_key: 'a'.repeat(64_000) } }, 'credentials: expected'],
  ['a large salt', { ...newDevice, credentials: { ...hash, salt: long } }, 'credentials: expected'],
  ['few iterations', { ...newDevice, credentials: { ...hash, iterations: 999 } }, 'credentials: expected'],
  ['many iterations', { ...newDevice, credentials: { ...hash, iterations: 600_001 } }, 'credentials: expected'],
  ['half an iteration', { ...newDevice, credentials: { ...hash, iterations: 1000.5 } }, 'credentials: expected'],
  ['iterations as text', { ...newDevice, credentials: { ...hash, iterations: '600000' } }, 'credentials: expected'],
  ['roles in credentials', { ...newDevice, credentials: { ...hash, roles: ['_admin'] } }, 'credentials: expected'],
  ['no device id', { ...newConfirm, device_id: undefined }, 'device_id: expected 1 to 200 characters'],
  [
    'a device id that is an object',
    { ...newConfirm, device_id: { $gt: '' } },
    'device_id: expected 1 to 200 characters',
  ],
  ['a large confirm code', { ...newConfirm, confirm_code: long }, 'confirm_code: expected 1 to 200 characters'],
  ['an empty confirm code', { ...newConfirm, confirm_code: '' }, 'confirm_code: expected 1 to 200 characters'],
  [
    'a confirmation that requests credentials',
    { ...newConfirm, credentials: { generate: true } },
    'credentials: expected',
  ],
  ['a secret', { ...newDevice, secret_sha256: 'correct horse' }, 'secret_sha256: expected the SHA-256 of a secret'],
  ['half a hash', { ...newDevice, secret_sha256: 'a'.repeat(63) }, 'secret_sha256: expected the SHA-256 of a secret'],
  [
    'a secret in a confirmation',
    { ...newConfirm, secret_sha256: 1 },
    'secret_sha256: expected the SHA-256 of a secret',
  ],
  ['the field of the inbox', { ...newDevice, inbox: { rev: '1-a' } }, 'inbox: expected what the sidecar wrote'],
  [
    'the field of the inbox in a confirmation',
    { ...newConfirm, inbox: { rev: '1-a' } },
    'inbox: expected what the sidecar wrote',
  ],
  ['a used confirmation', { ...newConfirm, state: 'used' }, 'a new confirm document begins in state clicked'],
]

test(`the guard refuses each of ${forged.length} malformed and forged documents with its reason`, async () => {
  const db = await guardedDb()
  const { couch } = await createUser()
  const docs = forged.map(([name, doc]) => ({ _id: name, ...doc }))
  const answers = await tryBulk(couch, db, docs)
  expect([...answers].map(([name, answer]) => `${name}: ${answer}`)).toEqual(
    forged.map(([name, , reason]) => expect.stringContaining(`${name}: ${reason}`) as string),
  )
  for (const answer of answers.values()) expect(answer.length).toBeLessThan(1000)
})

test('the guard accepts each well-formed document from a member who is no admin', async () => {
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
    { _id: 'secret', ...newDevice, secret_sha256: 'a'.repeat(64) },
    { _id: 'confirm', ...newConfirm },
    { _id: 'secret confirm', ...newConfirm, secret_sha256: 'a'.repeat(64) },
    { _id: 'confirm with credentials', ...newConfirm, credentials: hash },
  ]
  expect([...(await tryBulk(couch, db, docs)).values()]).toEqual(docs.map(() => 'fine'))
})
