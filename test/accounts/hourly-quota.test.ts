import { expect, test } from 'vitest'
import type { Database } from '../../sidecar/couch/database.ts'
import { takeMailQuota } from '../../sidecar/accounts/hourly-quota.ts'
import { mailboxHashOf } from '../../sidecar/accounts/owner.ts'
import { freshDb } from '../support/couchdb.ts'

const HOUR_MS = 3_600_000
const NOON = Date.UTC(2030, 0, 1, 12)
const owner = 'owner@example.com'

const documentsOf = (db: Database): Parameters<typeof takeMailQuota>[0] => ({
  find: (id) => db.find(id),
  put: (doc) => db.put(doc),
})

const take = (db: Database, owner: string, key: string, limit: number, now: number, by?: string) =>
  takeMailQuota(documentsOf(db), { owner, key, by }, limit, now)

const countIn = async (db: Database) => ((await db.get(`mails:${mailboxHashOf(owner)}`)).mails as unknown[]).length

test('an owner gets the allowed number of mails within an hour, and more when the hour is over', async () => {
  const db = await freshDb('ledger')
  expect(await take(db, owner, 'a', 2, NOON)).toBe(true)
  expect(await take(db, owner, 'b', 2, NOON + HOUR_MS / 2)).toBe(true)
  expect(await take(db, owner, 'c', 2, NOON + HOUR_MS - 1)).toBe(false)
  expect(await take(db, owner, 'c', 2, NOON + HOUR_MS)).toBe(true)
  expect(await take(db, owner, 'd', 2, NOON + HOUR_MS)).toBe(false)
  expect(await countIn(db)).toBe(2)
})

test('a repeated attempt for the same mail counts once, also when the limit is reached', async () => {
  const db = await freshDb('ledger')
  for (let tries = 0; tries < 3; tries++) expect(await take(db, owner, 'a', 1, NOON)).toBe(true)
  expect(await take(db, owner, 'b', 1, NOON)).toBe(false)
  expect(await countIn(db)).toBe(1)
})

test('a repeated attempt for the same mail counts from the last time it may have been sent', async () => {
  const db = await freshDb('ledger')
  expect(await take(db, owner, 'a', 1, NOON)).toBe(true)
  expect(await take(db, owner, 'a', 1, NOON + HOUR_MS / 2)).toBe(true)
  expect(await take(db, owner, 'b', 1, NOON + HOUR_MS)).toBe(false)
  expect(await take(db, owner, 'b', 1, NOON + HOUR_MS * 1.5)).toBe(true)
})

test('all spellings of an address share one quota, and other owners have their own', async () => {
  const db = await freshDb('ledger')
  expect(await take(db, 'Owner@Example.com', 'a', 1, NOON)).toBe(true)
  expect(await take(db, owner, 'b', 1, NOON)).toBe(false)
  expect(await take(db, 'another@example.com', 'c', 1, NOON)).toBe(true)
})

test('concurrent requests take exactly the allowed number of mails', async () => {
  const db = await freshDb('ledger')
  const taken = await Promise.all(Array.from({ length: 8 }, (_, i) => take(db, owner, `key-${i}`, 3, NOON)))
  expect(taken.filter(Boolean)).toHaveLength(3)
  expect(await countIn(db)).toBe(3)
})

test('the quota document does not contain the address', async () => {
  const db = await freshDb('ledger')
  await take(db, owner, 'a', 1, NOON)
  expect(JSON.stringify(await db.get(`mails:${mailboxHashOf(owner)}`))).not.toContain('example')
})

test('one sender who repeats an address does not use up the quota of other senders', async () => {
  const db = await freshDb('ledger')
  for (const key of ['a', 'b', 'c', 'd', 'e']) expect(await take(db, owner, key, 5, NOON, 'eve')).toBe(true)
  expect(await take(db, owner, 'f', 5, NOON, 'eve')).toBe(false)
  expect(await take(db, owner, 'g', 5, NOON, 'ann')).toBe(true)
})

test('all senders together get at most four times the limit of mails to one owner', async () => {
  const db = await freshDb('ledger')
  const taken: boolean[] = []
  for (let i = 0; i < 12; i++) taken.push(await take(db, owner, `${i}`, 2, NOON, `sender-${i}`))
  expect(taken.filter(Boolean)).toHaveLength(8)
  expect(await take(db, owner, '0', 2, NOON, 'sender-0'), 'a repeated attempt for a counted mail').toBe(true)
})

test('dots and a plus suffix do not make another mailbox', async () => {
  const db = await freshDb('ledger')
  for (const [i, address] of ['own.er@example.com', 'owner+1@example.com', 'O.wner+x+y@EXAMPLE.com'].entries())
    expect(await take(db, address, `${i}`, 3, NOON)).toBe(true)
  expect(await take(db, owner, 'b', 3, NOON)).toBe(false)
  for (const other of ['owner@sub.example.com', '+owner@example.com', 'owner-1@example.com'])
    expect(await take(db, other, 'c', 1, NOON), other).toBe(true)
})
