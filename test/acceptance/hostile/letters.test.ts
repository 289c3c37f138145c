/** Unusual characters in ids, names and addresses are kept as text, or refused with a reason. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { normaliseAddress } from '../../../sidecar/accounts/owner.ts'
import { ownerHashOf } from '../../../sidecar/accounts/owner.ts'
import { uniqueName } from '../../support/couchdb.ts'
import { sample } from '../../support/thorough.ts'
import { newDevice, untilState } from '../registration.ts'
import { openStage, untilError, type Stage } from './stage.ts'

let stage: Stage
beforeAll(async () => (stage = await openStage()))
afterAll(() => stage.close())

describe('a device registers under the id', () => {
  const unique = uniqueName('id')
  const ids = [
    `${unique}/with/slashes`,
    `${unique} with spaces `,
    `${unique}?a=b&c#d`,
    `${unique}%2F..%2f%00`,
    `${unique}"quoted"<b>\\`,
    `${unique}+плюс+加`,
    `${unique}😀\u202Eedoc`,
    `${unique}e\u0301`,
    unique.padEnd(200, 'x'),
    `confirm:${unique}`,
    `org.couchdb.user:${unique}`,
  ]
  test.each(sample(ids, 3))('%j', async (_id) => {
    expect(await stage.registerGoodDevice({ _id })).toMatchObject({ _id, state: 'active' })
  })
})

test('a client cannot write the document that counts mails', async () => {
  const _id = `mails:${ownerHashOf(normaliseAddress('victim@example.com'))}`
  await expect(stage.registerGoodDevice({ _id })).rejects.toMatchObject({ code: 'forbidden' })
  await stage.registerGoodDevice({ owner: 'victim@example.com' })
})

describe('a mail shows the name as text, in one line and to its owner only', () => {
  test.each([
    ['=?utf-8?q?x=0D=0ABcc:_victim=40example?=', '= ?utf-8?q?x=0D=0ABcc:_victim=40example?='],
    ['%0D%0ABcc: victim'],
    ['\\r\\nBcc: victim'],
    ['<script>alert(1)</script>'],
    ['{{link}}{{{owner}}}{{> x}}'],
    ['Bob’s 📱'],
    ['e\u0301'.repeat(40)],
    ['محمول'],
    ['\u202Eenohp', 'enohp'],
    ['a\u00A0\u3000b', 'a b'],
  ])('%j', async (name, shown = name) => {
    const device = newDevice({ name })
    await stage.control.member.put(device)
    await untilState(stage, device._id, 'confirming')
    const mails = await stage.mailsTo(device.owner)
    expect(mails).toHaveLength(1)
    expect(mails[0]!.to).toEqual([device.owner])
    expect(mails[0]!.subject).toBe('Confirm your device')
    expect(mails[0]!.text).toContain(`"${shown}"`)
  })
})

test.each([
  'if asked, the code is 1234',
  'the code: １-２-３-４',
  '1️⃣2️⃣3️⃣4️⃣',
  'see https://evil.example',
  'evil.example',
  'call eve@example.com',
])('a name that imitates the text of the mail is refused, and no mail is sent: %j', async (name) => {
  const device = newDevice({ name, device_code: '1234' })
  const refused = await stage.control.member.put(device).catch((thrown: unknown) => thrown)
  if (refused instanceof Error) expect(refused.message).toMatch(/name: expected/)
  else await untilState(stage, device._id, 'error') // where CouchDB's engine cannot decide, the handler refuses it
  expect(await stage.mailsTo(device.owner)).toEqual([])
})

describe('an address is refused with a reason, and no mail is sent', () => {
  test.each([
    'ow\u202Ener@example.com',
    'ow\u200Bner@example.com',
    'ow..ner@example.com',
    'owner@example..com',
    'owner@-example.com',
    'owner@example.com.',
    'owner@exa_mple.com',
    'owner@exa\u2044mple.com',
    'owner@😀.com',
    'owner@%65xample.com',
    'owner@exam=ple.com',
  ])('%j', async (owner) => {
    const device = newDevice({ owner })
    await stage.control.member.put(device)
    const reason = expect.stringContaining('email address') as string
    expect(await untilError(stage.control, device._id)).toMatchObject({ code: 'bad_address', reason })
    expect(await stage.mailsTo(owner)).toEqual([])
  })
})

describe('all spellings of an address have one owner, and similar addresses have another', () => {
  test.each([
    ['case', 'Owner@Example.COM', 'owner@example.com', true],
    ['composition', 'caf\u00E9@example.com', 'cafe\u0301@example.com', true],
    ['international domain', 'owner@EX\u00C4MPLE.com', 'owner@ex\u00E4mple.com', true],
    ['ASCII form of the domain', 'owner@xn--exmple-cua.com', 'owner@ex\u00E4mple.com', true],
    ['homoglyph', '\u043Ewner@example.com', 'owner@example.com', false],
    ['full width', 'ｏwner@example.com', 'owner@example.com', false],
    ['dotless', 'ownerı@example.com', 'owneri@example.com', false],
    ['plus', 'another+phone@example.com', 'another@example.com', false],
    ['emoji', '😀@example.com', '😁@example.com', false],
  ])('%s: %s and %s', async (_, one, other, same) => {
    const devices = [newDevice({ owner: one }), newDevice({ owner: other })]
    for (const device of devices) await stage.control.member.put(device)
    const owners = devices.map(async ({ _id }) => (await untilState(stage, _id, 'confirming')).owner)
    const [first, second] = await Promise.all(owners)
    expect(first === second).toBe(same)
    expect(ownerHashOf(normaliseAddress(one)) === ownerHashOf(normaliseAddress(other))).toBe(same)
  })
})

test('a valid device still registers', () => stage.registerGoodDevice())
