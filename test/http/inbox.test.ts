/** What may be left in the inbox, and what is learnt from it. The test is in the place of the handlers. */
import { describe, expect, it, test } from 'vitest'
import { inboxIdOf } from '../../sidecar/inbox/names.ts'
import { createTestCouch, uniqueName } from '../support/couchdb.ts'
import { credentials } from '../devices/rig.ts'
import { answerDevice, newConfirm, newDevice, newSecret, sha256, startInbox, type InboxRig } from './inbox-rig.ts'

const REV = /^1-[0-9a-f]{32}$/
const missing = { status: 404, body: { error: 'not_found', reason: 'missing' } }
const forbidden = (reason: string) => ({
  status: 403,
  body: { error: 'forbidden', reason: expect.stringContaining(reason) as string },
})
const only = ({ status, body }: { status: number; body: unknown }) => ({ status, body })

describe('a device that is sent', () => {
  it('stands in the control database under an id that nobody else can meet', async () => {
    const rig = await startInbox()
    const secret = newSecret()
    const device = newDevice(secret)
    const answer = await rig.post(device)
    expect(only(answer)).toEqual({
      status: 201,
      body: { ok: true, id: device._id, rev: expect.stringMatching(REV) as string },
    })
    const [doc, ...others] = await rig.documents()
    expect(others).toEqual([])
    expect(doc).toEqual({
      ...device,
      _id: inboxIdOf(sha256(secret), device._id),
      _rev: expect.any(String) as string,
      inbox: { rev: answer.body.rev },
    })
    expect(JSON.stringify(doc)).not.toContain(secret)
  })

  it('may come by PUT under its id, or by POST without one', async () => {
    const rig = await startInbox()
    const secret = newSecret()
    const { _id, ...device } = newDevice(secret)
    expect((await rig.put(_id, device)).body).toMatchObject({ ok: true, id: _id })
    expect((await rig.put(_id, { ...device, _id: 'another' })).status).toBe(400)
    const { body } = await rig.post(device)
    expect(body.id).toMatch(/^[0-9a-f]{32}$/)
    expect((await rig.fate(body.id as string, secret)).body).toMatchObject({ _id: body.id, state: 'new' })
    expect(await rig.documents()).toHaveLength(2)
  })

  it('is one document, sent twenty times at once', async () => {
    const rig = await startInbox()
    const device = newDevice(newSecret())
    const answers = await Promise.all(Array.from({ length: 20 }, () => rig.post(device)))
    expect(new Set(answers.map(({ status, body }) => JSON.stringify([status, body]))).size).toBe(1)
    expect(answers[0]!.status).toBe(201)
    const [doc, ...others] = await rig.documents()
    expect(others).toEqual([])
    expect(doc?._rev).toMatch(/^1-/)
    expect(rig.counts.documents).toEqual({ taken: 1, repeated: 19, refused: 0, conflict: 0 })
  })

  it('changes nothing when it comes again, whatever became of it', async () => {
    const rig = await startInbox()
    const device = newDevice(newSecret())
    const first = await rig.post(device)
    for (const state of ['confirming', 'expired', 'active', 'revoked']) {
      const { _rev } = await answerDevice(rig, device, { state, docstate: { state, handled: true } })
      expect(only(await rig.post(device))).toEqual(only(first))
      expect((await rig.stored(device))._rev).toBe(_rev)
    }
  })

  it('asks for another mail by a change of its last revision, as often as it names a new one', async () => {
    const rig = await startInbox()
    const secret = newSecret()
    const device = newDevice(secret, { owner: 'Ann@Example.com', name: 'phone' })
    const { body } = await rig.post(device)
    const asks = { ...device, _rev: body.rev }
    expect(only(await rig.post(asks))).toEqual(forbidden('the sidecar has not seen this device yet'))
    const answered = { owner: 'ann@example.com', owner_role: 'owner-1', confirmation: { codes: [{ hash: 'h' }] } }
    await answerDevice(rig, device, { ...answered, state: 'confirming', docstate: { state: 'confirming' } })

    const again = await rig.post(asks)
    expect(only(again)).toEqual({
      status: 201,
      body: { ok: true, id: device._id, rev: expect.stringMatching(/^2-/) as string },
    })
    const asked = await rig.stored(device)
    expect(asked).toMatchObject({ ...answered, state: 'new', name: 'phone', inbox: { rev: again.body.rev } })
    expect(asked).not.toHaveProperty('docstate')

    await answerDevice(rig, device, { state: 'error', error: { code: 'too_many_mails', reason: 'r', at: 't' } })
    expect(only(await rig.post(asks))).toEqual(only(again))
    expect(await rig.stored(device)).toMatchObject({ state: 'error' })
    expect((await rig.post({ ...asks, _rev: again.body.rev })).body.rev).toMatch(/^3-/)
    expect(await rig.stored(device)).toMatchObject({ state: 'new' })
    expect(await rig.stored(device)).not.toHaveProperty('error')
  })

  it('is in conflict, as in CouchDB, if it changes what is not its last revision', async () => {
    const rig = await startInbox()
    const device = newDevice(newSecret())
    await rig.post(device)
    const conflict = { status: 409, body: { error: 'conflict', reason: 'Document update conflict.' } }
    expect(only(await rig.post({ ...device, name: 'another' }))).toEqual(conflict)
    expect(only(await rig.post({ ...device, _rev: '1-0123456789abcdef0123456789abcdef' }))).toEqual(conflict)
    expect(only(await rig.post({ ...newDevice(newSecret()), _rev: '1-a' }))).toEqual(conflict)
    expect(await rig.stored(device)).not.toHaveProperty('name')
  })

  it.each([
    ['owner', { owner: 'another@example.com' }],
    ['device_code', { device_code: '9999' }],
    ['credentials', { credentials }],
    ['state', { state: 'active' }],
    ['type', { type: 'confirm' }],
  ])('keeps its %s', async (field, changed) => {
    const rig = await startInbox()
    const device = newDevice(newSecret())
    const { body } = await rig.post(device)
    const { _rev } = await answerDevice(rig, device, { state: 'confirming' })
    expect(only(await rig.post({ ...device, ...changed, _rev: body.rev }))).toEqual(forbidden(field))
    expect((await rig.stored(device))._rev).toBe(_rev)
  })

  it('is not changed while a worker has it', async () => {
    const rig = await startInbox()
    const device = newDevice(newSecret())
    const { body } = await rig.post(device)
    await answerDevice(rig, device, { docstate: { state: 'new', claim: { worker: 'w' } } })
    expect(only(await rig.post({ ...device, _rev: body.rev }))).toEqual(forbidden('this document is being handled'))
  })

  it('is another one with another secret, of which its namesake learns nothing', async () => {
    const rig = await startInbox()
    const [mine, other] = [newSecret(), newSecret()]
    const device = newDevice(mine)
    const { body } = await rig.post(device)
    await answerDevice(rig, device, { state: 'confirming' })
    const taken = await rig.post({ ...device, secret_sha256: sha256(other), device_code: '6666' })
    expect(taken.status).toBe(201)
    const free = await rig.post({ ...device, _id: uniqueName('nobodys'), secret_sha256: sha256(other) })
    expect([taken.status, Object.keys(taken.body)]).toEqual([free.status, Object.keys(free.body)])
    expect((await rig.post({ ...device, secret_sha256: sha256(other), _rev: body.rev })).status).toBe(409)
    expect(await rig.stored(device)).toMatchObject({ state: 'confirming', device_code: '1234' })
    expect((await rig.fate(device._id, other)).body).toMatchObject({ state: 'new' })
  })
})

describe('a confirmation that is sent', () => {
  it('is of a device with the same secret, by the id that its writer knows', async () => {
    const rig = await startInbox()
    const secret = newSecret()
    const confirm = newConfirm(secret, 'my device')
    expect((await rig.post(confirm)).status).toBe(201)
    expect(await rig.stored(confirm)).toMatchObject({ device_id: inboxIdOf(sha256(secret), 'my device') })
    await answerDevice(rig, confirm, { state: 'used' })
    expect((await rig.post(confirm)).status).toBe(201)
    expect(await rig.stored(confirm)).toMatchObject({ state: 'used' })
  })

  it('is decided once: another needs another id', async () => {
    const rig = await startInbox()
    const confirm = newConfirm(newSecret(), 'my device')
    const { body } = await rig.post(confirm)
    await answerDevice(rig, confirm, { state: 'error', error: { code: 'refused', reason: 'r', at: 't' } })
    expect(only(await rig.post({ ...confirm, _rev: body.rev }))).toEqual(forbidden('in state error'))
  })
})

describe('the fate of a document', () => {
  it('is told to whoever has its secret, and is no more than what became of it', async () => {
    const rig = await startInbox()
    const secret = newSecret()
    const device = newDevice(secret, { name: 'phone', credentials })
    const { body } = await rig.post(device)
    const fate = { _id: device._id, _rev: body.rev, type: 'device' }
    expect((await rig.fate(device._id, secret)).body).toEqual({ ...fate, state: 'new' })
    const error = { code: 'mail_refused', reason: 'the mail server said: no such user', at: '2030-01-01T00:00:00.000Z' }
    const secrets = { owner_role: 'owner-1', confirmation: { codes: [{ hash: 'h' }] }, docstate: { state: 'error' } }
    await answerDevice(rig, device, { ...secrets, state: 'error', error })
    const { code, at } = error
    expect((await rig.fate(device._id, secret)).body).toEqual({ ...fate, state: 'error', error: { code, at } })
    await answerDevice(rig, device, { ...secrets, state: 'active', error: undefined, user: 'device-1' })
    expect((await rig.fate(device._id, secret)).body).toEqual({ ...fate, state: 'active', user: 'device-1' })
  })

  it('is nothing, and the same nothing, for whoever has not the secret', async () => {
    const rig = await startInbox()
    const secret = newSecret()
    const device = newDevice(secret)
    await rig.post(device)
    const stored = (await rig.stored(device))._id
    const askers: [string, string | undefined][] = [
      [device._id, undefined],
      [device._id, newSecret()],
      [device._id, sha256(secret)],
      [device._id, ''],
      ['unknown', secret],
      [stored, secret],
      [stored, undefined],
      ['constructor', secret],
    ]
    for (const [id, asker] of askers) expect(only(await rig.fate(id, asker)), id).toEqual(missing)
    const basic = { authorization: `Basic ${Buffer.from(`${device._id}:${secret}`).toString('base64')}` }
    expect(only(await rig.send(`/${device._id}`, { headers: basic }))).toEqual(missing)
    expect(only(await rig.send(`/${device._id}?secret=${secret}`))).toEqual(missing)
  })

  it('is not told of what others have put under such an id', async () => {
    const rig = await startInbox()
    const secret = newSecret()
    await rig.db.put({ _id: inboxIdOf(sha256(secret), 'd'), type: 'secret', state: 'new' })
    expect(only(await rig.fate('d', secret))).toEqual(missing)
  })

  it('leaves no secret in the log', async () => {
    const rig = await startInbox()
    const secret = newSecret()
    const device = newDevice(secret, { owner: 'hidden@example.com' })
    await rig.post(device)
    await rig.fate(device._id, secret)
    expect(rig.logged.join()).toContain('/inbox/…')
    expect(rig.logged.join()).not.toMatch(new RegExp(`${secret}|${device.secret_sha256}|hidden|${device._id}`))
  })
})

describe('nothing can be read', () => {
  const paths = [
    ...['/_all_docs', '/_changes', '/_changes?feed=continuous', '/_design/docstate', '/_design_docs', '/_security'],
    ...[
      '/_local_docs',
      '/_revs_limit',
      '/_index',
      '/_shards',
      '/%5Fall_docs',
      '/a/b',
      '/_design/docstate/_view/by_state',
    ],
    ...['/../control/_all_docs', '/..%2fcontrol%2f_all_docs'],
  ]

  it('at any path or by any method but those of the inbox', async () => {
    const rig = await startInbox()
    await rig.post(newDevice(newSecret()))
    for (const path of paths) {
      const { status, body } = await rig.send(path)
      expect([403, 404], path).toContain(status)
      expect(Object.keys(body), path).toEqual(['error', 'reason'])
    }
    for (const path of ['/_find', '/_bulk_get', '/_all_docs', '/_purge', '/_compact', '/_missing_revs', '/d']) {
      expect(only(await rig.post({ selector: {} }, path)), path).toEqual(forbidden('The inbox takes documents'))
    }
    for (const [method, path] of [
      ['DELETE', '/d?rev=1-a'],
      ['DELETE', ''],
      ['PUT', '/_security'],
      ['PUT', '/_design/d'],
      ['PUT', '/d/attachment'],
      ['COPY', '/d'],
    ] as const) {
      expect((await rig.send(path, { method, body: '{}' })).status, `${method} ${path}`).toBe(403)
    }
    expect(await rig.documents()).toHaveLength(1)
  })

  it('from what it answers as a database, which is the same before and after', async () => {
    const rig = await startInbox()
    const asked = async () => [
      only(await rig.send('')),
      only(await rig.send('/')),
      only(await rig.send('', { method: 'HEAD' })),
      only(await rig.send('', { method: 'PUT' })),
      only(await rig.post({ d: ['1-a'], __proto__: ['1-b'] }, '/_revs_diff')),
      only(await rig.send('/_local/x')),
      only(await rig.send('/_local/x', { method: 'PUT', body: '{"a":1}' })),
      only(await rig.post({}, '/_ensure_full_commit')),
    ]
    const before = await asked()
    expect(before.map(({ status }) => status)).toEqual([200, 200, 200, 412, 200, 404, 201, 201])
    expect(before[0]!.body).toMatchObject({ db_name: 'inbox', doc_count: 0, update_seq: '0' })
    expect(before[4]!.body).toEqual({ d: { missing: ['1-a'] } })
    await rig.post({ ...newDevice(newSecret()), _id: 'd' })
    expect(await asked()).toEqual(before)
    expect(await rig.documents()).toHaveLength(1)
  })
})

describe('what may not be written is refused with the reason', () => {
  const device = newDevice(newSecret())
  const deep = JSON.parse(`${'['.repeat(3000)}${']'.repeat(3000)}`) as unknown
  const lone = JSON.parse('"\\ud800"') as string
  const table: [string, unknown, string][] = [
    ['no secret', { ...device, secret_sha256: undefined }, 'secret_sha256: expected the SHA-256 of a secret'],
    ['a secret itself', { ...device, secret_sha256: 'correct horse' }, 'secret_sha256: expected the SHA-256'],
    ['a hash in capitals', { ...device, secret_sha256: 'A'.repeat(64) }, 'secret_sha256: expected the SHA-256'],
    ['a list of hashes', { ...device, secret_sha256: [device.secret_sha256] }, 'secret_sha256: expected the SHA-256'],
    ['no type', { ...device, type: undefined }, 'expected a document of type device or confirm'],
    ['another type', { ...device, type: 'order' }, 'expected a document of type device or confirm'],
    ['a worker', { ...device, type: 'worker' }, 'expected a document of type device or confirm'],
    ['a prototype as type', { ...device, type: '__proto__' }, 'expected a document of type device or confirm'],
    ['a constructor as type', { ...device, type: 'constructor' }, 'expected a document of type device or confirm'],
    ['an object as type', { ...device, type: { toString: 1 } }, 'expected a document of type device or confirm'],
    ['an active device', { ...device, state: 'active', user: 'device-1' }, 'a new device document begins in state new'],
    ['a revoked device', { ...device, state: 'revoked' }, 'a new device document begins in state new'],
    ['a state of the prototype', { ...device, state: 'toString' }, 'a device document has one of the states'],
    ['a used confirmation', newConfirm(newSecret(), 'd', { state: 'used' }), 'a new confirm document begins in state'],
    ['docstate', { ...device, docstate: {} }, 'the field docstate is written by the sidecar only'],
    ['inbox', { ...device, inbox: { rev: '9-a' } }, 'inbox: expected what the sidecar wrote'],
    ['inbox in a confirmation', newConfirm(newSecret(), 'd', { inbox: {} }), 'inbox: expected what the sidecar wrote'],
    ['a user', { ...device, user: 'device-1' }, 'user: expected what the sidecar wrote'],
    ['a role', { ...device, owner_role: 'owner-1' }, 'owner_role: expected what the sidecar wrote'],
    ['codes', { ...device, confirmation: { codes: [] } }, 'confirmation: expected what the sidecar wrote'],
    ['an error', { ...device, error: {} }, 'error: expected what the sidecar wrote'],
    ['a deletion', { ...device, _deleted: true }, 'deleted by an admin only'],
    ['half a deletion', { ...device, _deleted: false }, 'expected no fields but'],
    ['attachments', { ...device, _attachments: {} }, 'expected no fields but'],
    ['a reserved field', { ...device, _foo: 1 }, 'expected no fields but'],
    ['another field', { ...device, roles: ['_admin'] }, 'expected no fields but'],
    ['a prototype', { ...device, ['__proto__']: { a: 1 } }, 'expected no fields but'],
    ['a toString', { ...device, toString: 1, valueOf: 1 }, 'expected no fields but'],
    ['no address', { ...device, owner: 'nobody' }, 'owner: expected an email address'],
    ['two addresses', { ...device, owner: 'a@b.c, d@e.f' }, 'owner: expected an email address'],
    ['a line break', { ...device, name: 'a\r\nBcc: b' }, 'name: expected'],
    ['half a character', { ...device, name: lone }, 'expected whole characters'],
    ['half a character for a name', { ...device, [lone]: 1 }, 'expected whole characters'],
    ['nesting without end', { ...device, credentials: deep }, 'expected whole characters, and values nested'],
    ['a design document', { ...device, _id: '_design/x' }, '_id: expected the id of a document'],
    ['a local document', { ...device, _id: '_local/x' }, '_id: expected the id of a document'],
    ['an empty id', { ...device, _id: '' }, '_id: expected 1 to 200 characters'],
    ['a long id', { ...device, _id: 'x'.repeat(201) }, '_id: expected 1 to 200 characters'],
    ['a number as id', { ...device, _id: 1 }, '_id: expected 1 to 200 characters'],
    ['an object as id', { ...device, _id: { toString: 1 } }, '_id: expected 1 to 200 characters'],
    ['no id at all', { ...device, _id: null }, '_id: expected 1 to 200 characters'],
    ['a revision that is none', { ...device, _rev: 'last' }, '_rev: expected a revision'],
    ['a number as revision', { ...device, _rev: 1 }, '_rev: expected a revision'],
  ]

  let rig: InboxRig
  test(`each of ${table.length} documents, plain, in bulk and replicated`, async () => {
    rig = await startInbox()
    for (const [name, doc, reason] of table) expect(only(await rig.post(doc)), name).toEqual(forbidden(reason))
    for (const edits of [true, false]) {
      for (const [name, doc, reason] of table) {
        const replicated = edits ? doc : { _rev: '1-a', ...(doc as object) }
        const { status, body } = await rig.post({ docs: [replicated], new_edits: edits }, '/_bulk_docs')
        expect([status, body], name).toEqual([201, [expect.objectContaining(forbidden(reason).body)]])
      }
    }
    expect(await rig.documents()).toEqual([])
    expect(rig.counts.documents).toMatchObject({ taken: 0, refused: table.length * 3 })
  })

  const malformed: [string, string, string, number][] = [
    ['', 'not JSON', '{', 400],
    ['', 'nothing', '', 400],
    ['', 'a list', '[]', 400],
    ['', 'null', 'null', 400],
    ['', 'no UTF-8', '{"a":"\xff"}', 400],
    ['', 'too much', `{"name":"${'x'.repeat(17_000)}"}`, 413],
    ['/_bulk_docs', 'no documents', '{}', 400],
    ['/_bulk_docs', 'an object of documents', '{"docs":{"length":1}}', 400],
    ['/_bulk_docs', 'a number as document', '{"docs":[1]}', 400],
    ['/_bulk_docs', 'too many documents', `{"docs":[${'{},'.repeat(20)}{}]}`, 413],
    ['/_revs_diff', 'deep revisions', `{"a":${'['.repeat(8000)}${']'.repeat(8000)}}`, 400],
    ['/_revs_diff', 'no list of revisions', '{"a":"1-a"}', 400],
  ]

  it.each(malformed)('POST /inbox%s with %s', async (path, _, body, status) => {
    const rig = await startInbox()
    const answer = await rig.send(path, { method: 'POST', body: Buffer.from(body, 'latin1') })
    const said = { error: expect.any(String) as string, reason: expect.any(String) as string }
    expect(only(answer)).toEqual({ status, body: said })
    expect(await rig.documents()).toEqual([])
  })

  it('what is not announced as JSON', async () => {
    const { send } = await startInbox()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    expect((await send('', { method: 'POST', body: '{}', headers })).status).toBe(415)
  })
})

test('documents in bulk get a row each, in their order', async () => {
  const rig = await startInbox()
  const [one, two] = [newDevice(newSecret()), newDevice(newSecret())]
  const answer = await rig.post({ docs: [one, { ...two, state: 'active' }, one, two] }, '/_bulk_docs')
  expect(only(answer)).toEqual({
    status: 201,
    body: [
      { ok: true, id: one._id, rev: expect.stringMatching(REV) as string },
      { id: two._id, error: 'forbidden', reason: expect.any(String) as string },
      { ok: true, id: one._id, rev: expect.stringMatching(REV) as string },
      { ok: true, id: two._id, rev: expect.stringMatching(REV) as string },
    ],
  })
  expect(await rig.documents()).toHaveLength(2)
})

test('while there is no control database it is to be tried again later', async () => {
  const rig = await startInbox()
  await createTestCouch().request({ method: 'DELETE', db: rig.db.name })
  const answer = await rig.post(newDevice(newSecret()))
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5'])
})

test('a thousand requests leave it as it was', async () => {
  const rig = await startInbox({ perMinute: 60 })
  const statuses = new Map<number, number>()
  for (let round = 0; round < 20; round++) {
    const answers = await Promise.all(Array.from({ length: 50 }, () => rig.post({ type: '__proto__' })))
    for (const { status } of answers) statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  expect([...statuses.keys()].sort()).toEqual([403, 429])
  expect(statuses.get(403)!).toBeLessThan(200)
  expect(await rig.documents()).toEqual([])
})
