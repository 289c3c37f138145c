/** One request for a mail can take several attempts: which codes are valid afterwards, and how many mails count. */
import { expect, test } from 'vitest'
import { normaliseAddress } from '../../sidecar/accounts/owner.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import { hashCode } from '../../sidecar/devices/codes.ts'
import type { SentCode } from '../../sidecar/devices/device-documents.ts'
import { ownerHashOf } from '../../sidecar/accounts/owner.ts'
import { actOnOne, retry } from '../../sidecar/docstate/operator/actions.ts'
import { docstateIn } from '../docstate/rig.ts'
import { freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startTestSmtp } from '../support/smtp.ts'
import { newDevice, startRegistrationRig } from './rig.ts'

const sent = (name: string): SentCode => ({ hash: hashCode(name), expires_at: '2099-01-01T00:00:00.000Z', key: name })
const hashesIn = ({ confirmation }: StoredDoc) => (confirmation as { codes: SentCode[] }).codes.map(({ hash }) => hash)

/** A device with five sent mails that requests another. */
async function askForSixth(smtpUrl: string, mailsPerOwner?: number) {
  const db = await freshDb('tries')
  const codes = ['a', 'b', 'c', 'd', 'e'].map(sent)
  const device = newDevice({ confirmation: { codes } })
  await db.put(device)
  const random = () => 0.999 // delays of seconds: the tests trigger earlier attempts themselves
  await startRegistrationRig(db, { smtpUrl, random, ...(mailsPerOwner !== undefined && { mailsPerOwner }) })
  return { db, device, hashes: codes.map(({ hash }) => hash) }
}

/** Waits until the next attempt has failed and is stored; `again` then retries at once. */
async function afterFailure(db: Database, id: string, code: string, then: 'again' | 'wait' = 'again') {
  const failed = await eventually(async () => {
    const doc = await db.get(id)
    expect(docstateIn(doc)).toMatchObject({ failure: { code }, retry_at: expect.any(String) as string })
    return doc
  })
  if (then === 'again') await actOnOne(db, id, retry)
  return failed
}

const untilConfirming = (db: Database, id: string) =>
  eventually(async () => {
    const doc = await db.get(id)
    expect(doc).toMatchObject({ state: 'confirming' })
    return doc
  })

const countedFor = async (db: Database, owner: string) =>
  ((await db.get(`mails:${ownerHashOf(normaliseAddress(owner))}`)).mails as unknown[]).length

test.each([
  ['the server is down', 'mail_unreachable'],
  ['the server asks to come back later', 'mail_deferred'],
])('failed attempts that sent nothing drop no code and count as one mail: %s', async (_, code) => {
  const smtp = await startTestSmtp()
  if (code === 'mail_unreachable') await smtp.down()
  smtp.behave({ kind: 'refuse-message', code: 451 })
  const { db, device, hashes } = await askForSixth(smtp.url)
  for (let tries = 1; tries <= 4; tries++) {
    expect(hashesIn(await afterFailure(db, device._id, code, tries < 4 ? 'again' : 'wait'))).toEqual(hashes)
  }
  smtp.behave({ kind: 'accept' })
  if (code === 'mail_unreachable') await smtp.up()
  await actOnOne(db, device._id, retry)
  expect(hashesIn(await untilConfirming(db, device._id))).toEqual([...hashes.slice(1), expect.any(String)])
  expect(await countedFor(db, device.owner)).toBe(1)
})

test('a mail that is refused for good adds no code, and keeps the others', async () => {
  const smtp = await startTestSmtp()
  smtp.behave({ kind: 'refuse-recipient', code: 550 })
  const { db, device, hashes } = await askForSixth(smtp.url)
  await eventually(async () => expect(await db.get(device._id)).toMatchObject({ state: 'error' }))
  expect(hashesIn(await db.get(device._id))).toEqual(hashes)
})

test('attempts with an unknown outcome keep their codes for one mail, and each counts', async () => {
  const smtp = await startTestSmtp()
  smtp.behave({ kind: 'cut-after-message' })
  const { db, device, hashes } = await askForSixth(smtp.url)
  await afterFailure(db, device._id, 'mail_unanswered')
  await afterFailure(db, device._id, 'mail_unanswered')
  const third = hashesIn(await afterFailure(db, device._id, 'mail_unanswered', 'wait'))
  expect(third).toEqual([...hashes.slice(1), ...Array<unknown>(3).fill(expect.any(String))])
  expect(await countedFor(db, device.owner)).toBe(3)
  smtp.behave({ kind: 'accept' })
  await actOnOne(db, device._id, retry)
  const codes = hashesIn(await untilConfirming(db, device._id))
  expect(codes.slice(0, 7)).toEqual(third)
  expect(codes).toHaveLength(8)
  expect(new Set(smtp.accepted.map(({ messageId }) => messageId)).size).toBe(1)
  const links = smtp.accepted.map(({ text }) => /\/([\w-]+)\s/.exec(text!.split('/confirm/')[1]!)![1]!)
  expect(codes.slice(4)).toEqual(links.map(hashCode))
})

test('an attempt over the quota waits for the hour to pass', async () => {
  const smtp = await startTestSmtp()
  smtp.behave({ kind: 'cut-after-message' })
  const { db, device } = await askForSixth(smtp.url, 1)
  await afterFailure(db, device._id, 'mail_unanswered')
  const waiting = await afterFailure(db, device._id, 'too_many_mails', 'wait')
  expect(waiting).toMatchObject({ state: 'new' })
  expect(smtp.accepted).toHaveLength(1)
})
