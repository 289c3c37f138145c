/** What may be left in the inbox, and what is learnt from it. The test is in the place of the handlers. */
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
      inbox: { rev: answer.body.rev, by: expect.stringMatching(/^[0-9a-f]{16}$/) as string },
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
    expect((await rig.status(body.id as string, secret)).body).toMatchObject({ _id: body.id, state: 'new' })
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
    expect((await rig.status(device._id, other)).body).toMatchObject({ state: 'new' })
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

describe('the status of a document', () => {
  it('is told to whoever has its secret, and is no more than what became of it', async () => {
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
    for (const [id, asker] of askers) expect(only(await rig.status(id, asker)), id).toEqual(missing)
    const basic = { authorization: `Basic ${Buffer.from(`${device._id}:${secret}`).toString('base64')}` }
    expect(only(await rig.send(`/${device._id}`, { headers: basic }))).toEqual(missing)
    expect(only(await rig.send(`/${device._id}?secret=${secret}`))).toEqual(missing)
  })

  it('is not told of what others have put under such an id', async () => {
    const rig = await startInbox()
    const secret = newSecret()
    await rig.db.put({ _id: inboxIdOf(sha256(secret), 'd'), type: 'secret', state: 'new' })
    expect(only(await rig.status('d', secret))).toEqual(missing)
  })

  it('leaves no secret in the log', async () => {
    const rig = await startInbox()
    const secret = newSecret()
    const device = newDevice(secret, { owner: 'hidden@example.com' })
    await rig.post(device)
    await rig.status(device._id, secret)
    expect(rig.logged.join()).toContain('/inbox/…')
    expect(rig.logged.join()).not.toMatch(new RegExp(`${secret}|${device.secret_sha256}|hidden|${device._id}`))
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
