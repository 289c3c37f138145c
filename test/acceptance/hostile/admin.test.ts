/**
 * No guard checks the writes of a server admin, and a database may hold documents from before its guard. So the
 * handlers check each document.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newDevice, untilState } from '../registration.ts'
import { newConfirm } from './documents.ts'
import { openStage, untilError, type Stage } from './stage.ts'

let stage: Stage
beforeAll(async () => (stage = await openStage()))
afterAll(() => stage.close())

const code = { hash: 'x', expires_at: '2099-01-01T00:00:00.000Z' }

test.each<[string, Record<string, unknown> & { _id: string }, string]>([
  ['a device without an owner', newDevice({ owner: undefined }), 'bad_device'],
  ['an owner that is a number', newDevice({ owner: 5 }), 'bad_device'],
  ['an owner that is an object', newDevice({ owner: { toLowerCase: 1 } }), 'bad_device'],
  ['an owner with a header', newDevice({ owner: 'owner@example.com\r\nBcc: victim@example.com' }), 'bad_device'],
  ['a name with a header', newDevice({ name: 'phone\r\nBcc: victim@example.com' }), 'bad_device'],
  ['a name that is an array', newDevice({ name: ['phone'] }), 'bad_device'],
  ['a device without a code', newDevice({ device_code: undefined }), 'bad_device'],
  ['a code that is null', newDevice({ device_code: null }), 'bad_device'],
  ['credentials in the clear', newDevice({ credentials: 'secret' }), 'bad_device'],
  ['unknown fields', newDevice({ admin: true }), 'bad_device'],
  ['a confirmed device without an owner', newDevice({ state: 'confirmed', owner: null }), 'bad_device'],
  ['a confirmed device with text as credentials', newDevice({ state: 'confirmed', credentials: 'x' }), 'bad_device'],
  ['a confirmed device without credentials', newDevice({ state: 'confirmed' }), 'no_credentials'],
  ['a confirmation without a device id', newConfirm({ device_id: undefined }), 'bad_confirm'],
  ['a confirmation with a number as device id', newConfirm({ device_id: 5 }), 'bad_confirm'],
  ['a confirmation without a code', newConfirm({ confirm_code: undefined }), 'bad_confirm'],
  ['a confirmation with arrays as codes', newConfirm({ device_code: ['1234'], confirm_code: [] }), 'bad_confirm'],
  ['a confirmation with text as credentials', newConfirm({ credentials: 'x' }), 'bad_confirm'],
  ['a confirmation with _all_docs as device id', newConfirm({ device_id: '_all_docs' }), 'refused'],
  ['a confirmation with a design document as device', newConfirm({ device_id: '_design/docstate' }), 'refused'],
])('%s ends in error with a reason', async (_, doc, expected) => {
  await stage.control.admin.put(doc)
  const error = await untilError(stage.control, doc._id)
  expect(error).toMatchObject({ code: expected, reason: expect.stringMatching(/\w+ \w+ \w+/) as string })
  expect(error.reason.length).toBeLessThan(600)
})

test.each<[string, unknown]>([
  ['null', null],
  ['a number', 5],
  ['a list', []],
  ['an object with text as codes', { codes: 'codes' }],
  ['an object with malformed codes', { codes: [null, 5, {}, { hash: 5 }, { ...code, expires_at: 'never' }] }],
  ['an object with malformed guesses', { codes: [code], wrong: 5, confirmed_by: {} }],
])('a device whose confirmation is %s still gets a mail', async (_, confirmation) => {
  const device = newDevice({ confirmation })
  await stage.control.admin.put(device)
  expect((await untilState(stage, device._id, 'confirming')).confirmation).toMatchObject({
    codes: expect.any(Array) as [],
  })
  expect(await stage.mailsTo(device.owner)).toHaveLength(1)
})

test.each([null, 5, 'x', [], {}, { state: 'new', claim: 5 }, { state: 'new', attempts: -1, retry_at: 'soon' }])(
  'a device whose docstate is %j still gets a mail',
  async (docstate) => {
    const device = newDevice({ docstate })
    await stage.control.admin.put(device)
    await untilState(stage, device._id, 'confirming')
    expect(await stage.mailsTo(device.owner)).toHaveLength(1)
  },
)

test('a valid device still registers', () => stage.registerGoodDevice())
