import { expect, test } from 'vitest'
import type { Database } from '../../sidecar/couch/database.ts'
import { takeMail } from '../../sidecar/devices/mail-ledger.ts'
import { ownerHashOf } from '../../sidecar/devices/names.ts'
import { freshDb } from '../support/couchdb.ts'

const HOUR_MS = 3_600_000
const NOON = Date.UTC(2030, 0, 1, 12)
const owner = 'owner@example.com'

const documentsOf = (db: Database): Parameters<typeof takeMail>[0] => ({
  find: (id) => db.find(id),
  put: (doc) => db.put(doc),
})

const countIn = async (db: Database) => ((await db.get(`mails:${ownerHashOf(owner)}`)).mails as unknown[]).length

test('an owner gets as many mails within an hour as allowed, and more when the hour is over', async () => {
  const db = await freshDb('ledger')
  expect(await takeMail(documentsOf(db), owner, 'a', 2, NOON)).toBe(true)
  expect(await takeMail(documentsOf(db), owner, 'b', 2, NOON + HOUR_MS / 2)).toBe(true)
  expect(await takeMail(documentsOf(db), owner, 'c', 2, NOON + HOUR_MS - 1)).toBe(false)
  expect(await takeMail(documentsOf(db), owner, 'c', 2, NOON + HOUR_MS)).toBe(true)
  expect(await takeMail(documentsOf(db), owner, 'd', 2, NOON + HOUR_MS)).toBe(false)
  expect(await countIn(db)).toBe(2)
})

test('another try of the same mail is counted once, also when the limit is reached', async () => {
  const db = await freshDb('ledger')
  for (let tries = 0; tries < 3; tries++) expect(await takeMail(documentsOf(db), owner, 'a', 1, NOON)).toBe(true)
  expect(await takeMail(documentsOf(db), owner, 'b', 1, NOON)).toBe(false)
  expect(await countIn(db)).toBe(1)
})

test('another try of the same mail is counted from the last time that it may have been sent', async () => {
  const db = await freshDb('ledger')
  expect(await takeMail(documentsOf(db), owner, 'a', 1, NOON)).toBe(true)
  expect(await takeMail(documentsOf(db), owner, 'a', 1, NOON + HOUR_MS / 2)).toBe(true)
  expect(await takeMail(documentsOf(db), owner, 'b', 1, NOON + HOUR_MS)).toBe(false)
  expect(await takeMail(documentsOf(db), owner, 'b', 1, NOON + HOUR_MS * 1.5)).toBe(true)
})

test('every spelling of an address counts together, and other owners apart', async () => {
  const db = await freshDb('ledger')
  expect(await takeMail(documentsOf(db), 'Owner@Example.com', 'a', 1, NOON)).toBe(true)
  expect(await takeMail(documentsOf(db), owner, 'b', 1, NOON)).toBe(false)
  expect(await takeMail(documentsOf(db), 'another@example.com', 'c', 1, NOON)).toBe(true)
})

test('of many that take at once, exactly as many as allowed get one', async () => {
  const db = await freshDb('ledger')
  const taken = await Promise.all(
    Array.from({ length: 8 }, (_, i) => takeMail(documentsOf(db), owner, `key-${i}`, 3, NOON)),
  )
  expect(taken.filter(Boolean)).toHaveLength(3)
  expect(await countIn(db)).toBe(3)
})

test('the address is nowhere in the database', async () => {
  const db = await freshDb('ledger')
  await takeMail(documentsOf(db), owner, 'a', 1, NOON)
  expect(JSON.stringify(await db.get(`mails:${ownerHashOf(owner)}`))).not.toContain('example')
})
