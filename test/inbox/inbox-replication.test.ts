/** Replication into the inbox by standard clients. The handlers run, or the test writes their results. */
import { expect, test } from 'vitest'
import { couchUrl, createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startTestSmtp } from '../support/smtp.ts'
import { startRegistrationRig } from '../devices/rig.ts'
import { answerDevice, newDevice, newSecret, startInbox } from './inbox-rig.ts'
import { createPouch } from './pouch.ts'

test('PouchDB registers a device by replicate.to, and replicating again changes nothing', async () => {
  const rig = await startInbox()
  const smtp = await startTestSmtp()
  await startRegistrationRig(rig.db, { smtpUrl: smtp.url })
  const pouch = createPouch()
  const [secret, device] = [newSecret(), newDevice(newSecret())]
  const sent = { ...device, secret_sha256: newDevice(secret).secret_sha256 }
  const { rev } = await pouch.put(sent)
  const first = await pouch.replicate.to(rig.url)
  expect(first).toMatchObject({ ok: true, docs_written: 1, doc_write_failures: 0, errors: [] })
  await eventually(async () => expect((await rig.status(sent._id, secret)).body).toMatchObject({ state: 'confirming' }))
  expect((await rig.status(sent._id, secret)).body).toMatchObject({ _rev: rev })

  const before = await rig.documents()
  for (let times = 0; times < 3; times++) expect(await pouch.replicate.to(rig.url)).toMatchObject({ ok: true })
  expect(await rig.documents()).toEqual(before)
  expect(smtp.accepted).toHaveLength(1)

  await pouch.put({ ...sent, _rev: rev })
  expect(await pouch.replicate.to(rig.url)).toMatchObject({ ok: true, doc_write_failures: 0 })
  await eventually(async () => {
    expect(smtp.accepted).toHaveLength(2)
    expect((await rig.status(sent._id, secret)).body).toMatchObject({ state: 'confirming' })
  })
  expect(await pouch.replicate.to(rig.url)).toMatchObject({ ok: true, doc_write_failures: 0 })
  expect((await rig.status(sent._id, secret)).body).toMatchObject({ state: 'confirming' })
  expect(smtp.accepted).toHaveLength(2)
})

test('PouchDB reports a refused document as denied and replicates the others', async () => {
  const rig = await startInbox()
  const pouch = createPouch()
  const device = newDevice(newSecret())
  await pouch.put({ _id: 'note', text: 'of the app itself' })
  await pouch.put({ _id: '_design/mine' })
  const { rev } = await pouch.put({ _id: 'old' })
  await pouch.remove('old', rev)
  await pouch.put(device)
  const denied: string[] = []
  const replication = pouch.replicate.to(rig.url).on('denied', ({ id }: { id: string }) => void denied.push(id))
  expect(await replication).toMatchObject({ ok: true, docs_written: 1, doc_write_failures: 3 })
  expect(denied.sort()).toEqual(['_design/mine', 'note', 'old'])
  expect(await rig.stored(device)).toMatchObject({ state: 'new' })
})

test('a live replication of PouchDB brings later changes, each revision once', async () => {
  const rig = await startInbox()
  const pouch = createPouch()
  const replication = pouch.replicate.to(rig.url, { live: true, retry: true })
  const device = newDevice(newSecret())
  const { rev } = await pouch.put(device)
  await eventually(async () => expect(await rig.stored(device)).toMatchObject({ inbox: { rev } }))
  await answerDevice(rig, device, { state: 'confirming' })
  const { rev: next } = await pouch.put({ ...device, _rev: rev })
  await eventually(async () => expect(await rig.stored(device)).toMatchObject({ state: 'new', inbox: { rev: next } }))
  expect(rig.counts.documents).toEqual({ taken: 2, repeated: 0, refused: 0, conflict: 0 })
  const ended = new Promise<void>((resolve) => void replication.on('complete', () => resolve()))
  replication.cancel()
  await ended
})

test('the inbox and CouchDB choose the same of two leaf revisions, for any order of arrival', async () => {
  const rig = await startInbox()
  const device = newDevice(newSecret())
  const send = async (...revs: string[]) => {
    const docs = revs.map((_rev) => ({ ...device, _rev }))
    expect((await rig.post({ docs, new_edits: false }, '/_bulk_docs')).body).toEqual([])
  }
  await send('1-a')
  await answerDevice(rig, device, { state: 'confirming' })
  await send('2-b', '2-a', '1-f', '1-a')
  expect(await rig.stored(device)).toMatchObject({ state: 'new', inbox: { rev: '2-b' } })
  await answerDevice(rig, device, { state: 'confirming' })
  for (let times = 0; times < 3; times++) await send('2-a', '2-b')
  expect(await rig.stored(device)).toMatchObject({ state: 'confirming', inbox: { rev: '2-b' } })
  await send('10-a')
  expect(await rig.stored(device)).toMatchObject({ state: 'new', inbox: { rev: '10-a' } })
  await send('9-f')
  expect(await rig.stored(device)).toMatchObject({ inbox: { rev: '10-a' } })
})

test('a replicated revision may also arrive by PUT', async () => {
  const rig = await startInbox()
  const device = newDevice(newSecret())
  const body = JSON.stringify({ ...device, _rev: '3-abc', _revisions: { start: 3, ids: ['abc', 'b', 'a'] } })
  const answer = await rig.send(`/${device._id}?new_edits=false`, { method: 'PUT', body })
  expect(answer.body).toEqual({ ok: true, id: device._id, rev: '3-abc' })
  expect(await rig.stored(device)).not.toHaveProperty('_revisions')
})

test('CouchDB can replicate into the inbox', async () => {
  const rig = await startInbox()
  const source = await freshDb('source')
  const device = newDevice(newSecret())
  await source.put(device)
  await source.put({ ...newDevice(newSecret()), type: 'order' })
  const body = { source: `${couchUrl()}/${source.name}`, target: rig.url }
  const replicate = () => createTestCouch().request({ method: 'POST', path: '_replicate', body })
  expect(await replicate()).toMatchObject({ ok: true })
  expect(await rig.stored(device)).toMatchObject({
    state: 'new',
    inbox: { rev: expect.stringMatching(/^1-/) as string },
  })
  const before = await rig.documents()
  expect(await replicate()).toMatchObject({ ok: true })
  expect(await rig.documents()).toEqual(before)
  expect(rig.counts.documents).toMatchObject({ taken: 1, repeated: 1 })
})
