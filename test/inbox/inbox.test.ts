/** Documents that the inbox accepts, and the status that it returns. The test writes the results of the handlers. */
import { describe, expect, it, test } from 'vitest'
import { inboxIdOf } from '../../sidecar/inbox/inbox-names.ts'
import { createTestCouch, uniqueName } from '../support/couchdb.ts'
import { credentials } from '../devices/rig.ts'
import {
  answerDevice,
  forbidden,
  missing,
  newConfirm,
  newDevice,
  newSecret,
  only,
  sha256,
  startInbox,
} from './inbox-rig.ts'

const REV = /^1-[0-9a-f]{32}$/

describe('a device sent to the inbox', () => {
  it('a device is stored in the control database under an id that is derived from its secret', async () => {
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
      inbox: { rev: answer.body.rev, by: expect.stringMatching(/^[0-9a-f]{16}$/) as string },
    })
    expect(JSON.stringify(doc)).not.toContain(secret)
  })

  it('a device may arrive by PUT with its id, or by POST without one', async () => {
    const rig = await startInbox()
    const secret = newSecret()
    const { _id, ...device } = newDevice(secret)
    expect((await rig.put(_id, device)).body).toMatchObject({ ok: true, id: _id })
    expect((await rig.put(_id, { ...device, _id: 'another' })).status).toBe(400)
    const { body } = await rig.post(device)
    expect(body.id).toMatch(/^[0-9a-f]{32}$/)
    expect((await rig.status(body.id as string, secret)).body).toMatchObject({ _id: body.id, state: 'new' })
    expect(await rig.documents()).toHaveLength(2)
  })

  it('a device sent twenty times at once is stored once', async () => {
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

  it('a device sent again changes nothing, in any state', async () => {
    const rig = await startInbox()
    const device = newDevice(newSecret())
    const first = await rig.post(device)
    for (const state of ['confirming', 'expired', 'active', 'revoked']) {
      const { _rev } = await answerDevice(rig, device, { state, docstate: { state, handled: true } })
      expect(only(await rig.post(device))).toEqual(only(first))
      expect((await rig.stored(device))._rev).toBe(_rev)
    }
  })

  it('a change of the last revision requests another mail, once for each revision', async () => {
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
    const requested = await rig.stored(device)
    expect(requested).toMatchObject({ ...answered, state: 'new', name: 'phone', inbox: { rev: again.body.rev } })
    expect(requested).not.toHaveProperty('docstate')

    await answerDevice(rig, device, { state: 'error', error: { code: 'too_many_mails', reason: 'r', at: 't' } })
    expect(only(await rig.post(asks))).toEqual(only(again))
    expect(await rig.stored(device)).toMatchObject({ state: 'error' })
    expect((await rig.post({ ...asks, _rev: again.body.rev })).body.rev).toMatch(/^3-/)
    expect(await rig.stored(device)).toMatchObject({ state: 'new' })
    expect(await rig.stored(device)).not.toHaveProperty('error')
  })

  it('a change of an older revision is a conflict, as in CouchDB', async () => {
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
  ])('a change of the %s of a device is refused', async (field, changed) => {
    const rig = await startInbox()
    const device = newDevice(newSecret())
    const { body } = await rig.post(device)
    const { _rev } = await answerDevice(rig, device, { state: 'confirming' })
    expect(only(await rig.post({ ...device, ...changed, _rev: body.rev }))).toEqual(forbidden(field))
    expect((await rig.stored(device))._rev).toBe(_rev)
  })

  it('a device claimed by a worker cannot be changed', async () => {
    const rig = await startInbox()
    const device = newDevice(newSecret())
    const { body } = await rig.post(device)
    await answerDevice(rig, device, { docstate: { state: 'new', claim: { worker: 'w' } } })
    expect(only(await rig.post({ ...device, _rev: body.rev }))).toEqual(forbidden('this document is being handled'))
  })

  it('the same id with another secret is another device, and the answer does not reveal the first one', async () => {
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
    expect((await rig.status(device._id, other)).body).toMatchObject({ state: 'new' })
  })
})

describe('a confirmation sent to the inbox', () => {
  it('a confirmation names its device by the client’s id and belongs to the one with the same secret', async () => {
    const rig = await startInbox()
    const secret = newSecret()
    const confirm = newConfirm(secret, 'my device')
    expect((await rig.post(confirm)).status).toBe(201)
    expect(await rig.stored(confirm)).toMatchObject({ device_id: inboxIdOf(sha256(secret), 'my device') })
    await answerDevice(rig, confirm, { state: 'used' })
    expect((await rig.post(confirm)).status).toBe(201)
    expect(await rig.stored(confirm)).toMatchObject({ state: 'used' })
  })

  it('a confirmation is decided once, and a new one needs another id', async () => {
    const rig = await startInbox()
    const confirm = newConfirm(newSecret(), 'my device')
    const { body } = await rig.post(confirm)
    await answerDevice(rig, confirm, { state: 'error', error: { code: 'refused', reason: 'r', at: 't' } })
    expect(only(await rig.post({ ...confirm, _rev: body.rev }))).toEqual(forbidden('in state error'))
  })
})

describe('the status of a document in the inbox', () => {
  it('the status needs the secret, and shows only state, error code and user', async () => {
    const rig = await startInbox()
    const secret = newSecret()
    const device = newDevice(secret, { name: 'phone', credentials })
    const { body } = await rig.post(device)
    const status = { _id: device._id, _rev: body.rev, type: 'device' }
    expect((await rig.status(device._id, secret)).body).toEqual({ ...status, state: 'new' })
    const error = { code: 'mail_refused', reason: 'the mail server said: no such user', at: '2030-01-01T00:00:00.000Z' }
    const secrets = { owner_role: 'owner-1', confirmation: { codes: [{ hash: 'h' }] }, docstate: { state: 'error' } }
    await answerDevice(rig, device, { ...secrets, state: 'error', error })
    const { code, at } = error
    expect((await rig.status(device._id, secret)).body).toEqual({ ...status, state: 'error', error: { code, at } })
    await answerDevice(rig, device, { ...secrets, state: 'active', error: undefined, user: 'device-1' })
    expect((await rig.status(device._id, secret)).body).toEqual({ ...status, state: 'active', user: 'device-1' })
  })

  it('the status is the same 404 for any request without the secret', async () => {
    const rig = await startInbox()
    const secret = newSecret()
    const device = newDevice(secret)
    await rig.post(device)
    const stored = (await rig.stored(device))._id
    const attempts: [string, string | undefined][] = [
      [device._id, undefined],
      [device._id, newSecret()],
      [device._id, sha256(secret)],
      [device._id, ''],
      ['unknown', secret],
      [stored, secret],
      [stored, undefined],
      ['constructor', secret],
    ]
    for (const [id, given] of attempts) expect(only(await rig.status(id, given)), id).toEqual(missing)
    const basic = { authorization: `Basic ${Buffer.from(`${device._id}:${secret}`).toString('base64')}` }
    expect(only(await rig.send(`/${device._id}`, { headers: basic }))).toEqual(missing)
    expect(only(await rig.send(`/${device._id}?secret=${secret}`))).toEqual(missing)
  })

  it('the status does not show a document of another type with the id of a device', async () => {
    const rig = await startInbox()
    const secret = newSecret()
    await rig.db.put({ _id: inboxIdOf(sha256(secret), 'd'), type: 'secret', state: 'new' })
    expect(only(await rig.status('d', secret))).toEqual(missing)
  })

  it('the log contains no secret', async () => {
    const rig = await startInbox()
    const secret = newSecret()
    const device = newDevice(secret, { owner: 'hidden@example.com' })
    await rig.post(device)
    await rig.status(device._id, secret)
    expect(rig.logged.join()).toContain('/inbox/…')
    expect(rig.logged.join()).not.toMatch(new RegExp(`${secret}|${device.secret_sha256}|hidden|${device._id}`))
  })
})

test('documents in bulk get one row each, in order', async () => {
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

test('the inbox answers 503 with retry-after while the control database is missing', async () => {
  const rig = await startInbox()
  await createTestCouch().request({ method: 'DELETE', db: rig.db.name })
  const answer = await rig.post(newDevice(newSecret()))
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5'])
})
