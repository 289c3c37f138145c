/** Clients overwrite existing documents, in every way that CouchDB offers. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Doc, StoredDoc } from '../../../sidecar/couch/documents.ts'
import type { Couch } from '../../../sidecar/couch/client.ts'
import { createTestCouch, needs } from '../../support/couchdb.ts'
import { urlOf } from '../control.ts'
import { newDevice, untilState } from '../registration.ts'
import { newConfirm } from './documents.ts'
import { openStage, refusalOf, untilError, type Stage } from './stage.ts'
import { answerOf } from '../../support/answers.ts'

let stage: Stage
let active: Doc
let waiting: StoredDoc
beforeAll(async () => {
  stage = await openStage()
  active = await stage.registerGoodDevice()
  const device = newDevice()
  await stage.control.member.put(device)
  waiting = await untilState(stage, device._id, 'confirming')
})
afterAll(() => stage.close())

/** The update with which a client requests another mail. */
const again = () => ({ ...waiting, state: 'new', docstate: undefined })

test.each<[string, Record<string, unknown>, RegExp]>([
  ['owner', { owner: 'thief@example.com' }, /owner: expected it unchanged/],
  ['device code', { device_code: '9999' }, /device_code: expected it unchanged/],
  ['credentials', { credentials: { generate: true } }, /credentials: expected it unchanged/],
  ['type', { type: 'confirm', state: 'clicked' }, /a device document keeps its type/],
  ['type to an unknown one', { type: 'note' }, /expected a document of type device or confirm/],
  ['user', { user: 'thief' }, /user: expected/],
  ['role', { owner_role: 'thieves' }, /owner_role: expected/],
  ['sent codes', { confirmation: { codes: [] } }, /confirmation: expected what the sidecar wrote/],
  ['claim', { docstate: { state: 'new', handled: 'x' } }, /docstate is written by the sidecar only/],
])('a request for another mail cannot change the %s', async (_, change, said) => {
  const refusal = await refusalOf(stage.control.member, { ...again(), ...change })
  expect(refusal).toMatch(/^forbidden: /)
  expect(refusal).toMatch(said)
  expect(await stage.control.admin.get(waiting._id)).toEqual(waiting)
})

/** Writes like replication: the client chooses the revisions. */
function pushBranch(couch: Couch, doc: Doc, revisions: string[]) {
  const start = revisions.length
  const body = {
    new_edits: false,
    docs: [{ ...doc, _rev: `${start}-${revisions[0]}`, _revisions: { start, ids: revisions } }],
  }
  const request = { method: 'POST', db: stage.control.name, path: '_bulk_docs', body } as const
  return answerOf<{ error?: string; reason?: string }[]>(couch, request)
}

const invented = (length: number) => Array.from({ length }, (_, i) => `${i}`.repeat(32).slice(0, 32))

test.each<[string, () => Doc, number]>([
  ['a device that was never new', () => newDevice({ state: 'active' }), 1],
  ['a new device with a history', () => newDevice(), 7],
  ['a longer history that revokes an active device', () => ({ ...active, state: 'revoked' }), 40],
  ['a longer history that returns a waiting device to new', again, 40],
  [
    'another first revision that confirms a waiting device',
    () => ({ ...waiting, state: 'confirmed', docstate: undefined }),
    1,
  ],
  ['the deletion of a device', () => ({ _id: active._id, _deleted: true }), 40],
  ['the deletion of the guard', () => ({ _id: '_design/docstate', _deleted: true }), 40],
])('replication cannot add a branch: %s', async (_, doc, length) => {
  needs('guarded revisions')
  const couch = createTestCouch({ url: urlOf(stage.control.memberName) })
  const pushed = doc()
  const leaves = () => stage.control.admin.leaves(pushed._id)
  const before = await leaves()
  const rows = await pushBranch(couch, pushed, invented(length))
  expect(rows).toMatchObject([{ error: expect.stringMatching(/^(forbidden|unauthorized)$/) as string }])
  expect(await leaves()).toEqual(before)
})

test('a user cannot confirm devices of other owners', async () => {
  const { control } = stage
  for (const fields of [
    { device_id: waiting._id },
    { device_id: waiting._id, confirm_code: '' },
    { device_id: waiting._id, confirm_code: (waiting.confirmation as { codes: { hash: string }[] }).codes[0]!.hash },
    { device_id: active._id },
    { device_id: 'nobody' },
    { device_id: '_changes' },
    { device_id: '_all_docs' },
    { device_id: '_design/docstate' },
    { device_id: '..' },
    { device_id: `../_users/org.couchdb.user:${String(active.user)}` },
  ]) {
    const confirm = newConfirm(fields)
    if ((await refusalOf(control.member, confirm)) !== undefined) continue
    const error = await untilError(control, confirm._id)
    expect({ fields, error }).toMatchObject({
      fields,
      error: { code: 'refused', reason: expect.any(String) as string },
    })
  }
  expect(await control.admin.get(waiting._id)).toEqual(waiting)
})

test('a valid device still registers', () => stage.registerGoodDevice())
