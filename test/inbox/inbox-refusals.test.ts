/** Requests that the inbox refuses, and the proof that no document can be read. */
import { describe, expect, it, test } from 'vitest'
import { forbidden, newConfirm, newDevice, newSecret, only, startInbox } from './inbox-rig.ts'

describe('reading is refused', () => {
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

  it('the inbox refuses to read at any other path or by any other method', async () => {
    const rig = await startInbox()
    await rig.post(newDevice(newSecret()))
    for (const path of paths) {
      const { status, body } = await rig.send(path)
      expect([403, 404], path).toContain(status)
      expect(Object.keys(body), path).toEqual(['error', 'reason'])
    }
    for (const path of ['/_find', '/_bulk_get', '/_all_docs', '/_purge', '/_compact', '/_missing_revs', '/d']) {
      expect(only(await rig.post({ selector: {} }, path)), path).toEqual(forbidden('The inbox only accepts documents'))
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

  it('the inbox answers as an empty database, before and after a document arrives', async () => {
    const rig = await startInbox()
    const requested = async () => [
      only(await rig.send('')),
      only(await rig.send('/')),
      only(await rig.send('', { method: 'HEAD' })),
      only(await rig.send('', { method: 'PUT' })),
      only(await rig.post({ d: ['1-a'], __proto__: ['1-b'] }, '/_revs_diff')),
      only(await rig.send('/_local/x')),
      only(await rig.send('/_local/x', { method: 'PUT', body: '{"a":1}' })),
      only(await rig.post({}, '/_ensure_full_commit')),
    ]
    const before = await requested()
    expect(before.map(({ status }) => status)).toEqual([200, 200, 200, 412, 200, 404, 201, 201])
    expect(before[0]!.body).toMatchObject({ db_name: 'inbox', doc_count: 0, update_seq: '0' })
    expect(before[4]!.body).toEqual({ d: { missing: ['1-a'] } })
    await rig.post({ ...newDevice(newSecret()), _id: 'd' })
    expect(await requested()).toEqual(before)
    expect(await rig.documents()).toHaveLength(1)
  })
})

describe('writes are refused with the reason', () => {
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
    ['half a character', { ...device, name: lone }, 'expected well-formed Unicode'],
    ['half a character for a name', { ...device, [lone]: 1 }, 'expected well-formed Unicode'],
    ['nesting without end', { ...device, credentials: deep }, 'expected well-formed Unicode, and values nested'],
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

  test(`each of ${table.length} documents is refused: plain, in bulk and replicated`, async () => {
    const rig = await startInbox()
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

  test(`each of ${malformed.length} malformed requests is refused`, async () => {
    const rig = await startInbox()
    const said = { error: expect.any(String) as string, reason: expect.any(String) as string }
    for (const [path, what, body, status] of malformed) {
      const answer = await rig.send(path, { method: 'POST', body: Buffer.from(body, 'latin1') })
      expect(only(answer), `POST /inbox${path} with ${what}`).toEqual({ status, body: said })
    }
    expect(await rig.documents()).toEqual([])
  })

  it('a body without a JSON content type is refused', async () => {
    const { send } = await startInbox()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    expect((await send('', { method: 'POST', body: '{}', headers })).status).toBe(415)
  })
})

test('hundreds of refused requests change nothing', async () => {
  const rig = await startInbox({ perMinute: 60 })
  const statuses = new Map<number, number>()
  for (let round = 0; round < 6; round++) {
    const answers = await Promise.all(Array.from({ length: 50 }, () => rig.post({ type: '__proto__' })))
    for (const { status } of answers) statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  expect([...statuses.keys()].sort()).toEqual([403, 429])
  expect(statuses.get(403)!).toBeLessThan(150)
  expect(await rig.documents()).toEqual([])
})
