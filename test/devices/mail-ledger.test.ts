import { expect, test } from 'vitest'
import type { Database } from '../../sidecar/couch/database.ts'
import { takeMail } from '../../sidecar/devices/mail-ledger.ts'
import { ownerHashOf } from '../../sidecar/devices/names.ts'
import { freshDb } from '../support/couchdb.ts'

const HOUR_MS = 3_600_000
const NOON = Date.UTC(2030, 0, 1, 12)
const owner = 'owner@example.com'

/** As the engine gives it to the handler of an entry. */
const contextOf = (db: Database, key: string): Parameters<typeof takeMail>[0] => ({
  key,
  find: (id) => db.find(id),
  put: async (doc) => ({ ...doc, _rev: await db.put(doc) }),
})

const countIn = async (db: Database) => ((await db.get(`mails:${ownerHashOf(owner)}`)).mails as unknown[]).length

test('an owner gets as many mails within an hour as allowed, and more when the hour is over', async () => {
  const db = await freshDb('ledger')
  expect(await takeMail(contextOf(db, 'a'), owner, 2, NOON)).toBe(true)
  expect(await takeMail(contextOf(db, 'b'), owner, 2, NOON + HOUR_MS / 2)).toBe(true)
  expect(await takeMail(contextOf(db, 'c'), owner, 2, NOON + HOUR_MS - 1)).toBe(false)
  expect(await takeMail(contextOf(db, 'c'), owner, 2, NOON + HOUR_MS)).toBe(true)
  expect(await takeMail(contextOf(db, 'd'), owner, 2, NOON + HOUR_MS)).toBe(false)
  expect(await countIn(db)).toBe(2)
})

test('another try of the same mail is counted once, also when the limit is reached', async () => {
  const db = await freshDb('ledger')
  for (let tries = 0; tries < 3; tries++) expect(await takeMail(contextOf(db, 'a'), owner, 1, NOON)).toBe(true)
  expect(await takeMail(contextOf(db, 'b'), owner, 1, NOON)).toBe(false)
  expect(await countIn(db)).toBe(1)
})

test('every spelling of an address counts together, and other owners apart', async () => {
  const db = await freshDb('ledger')
  expect(await takeMail(contextOf(db, 'a'), 'Owner@Example.com', 1, NOON)).toBe(true)
  expect(await takeMail(contextOf(db, 'b'), owner, 1, NOON)).toBe(false)
  expect(await takeMail(contextOf(db, 'c'), 'another@example.com', 1, NOON)).toBe(true)
})

test('of many that take at once, exactly as many as allowed get one', async () => {
  const db = await freshDb('ledger')
  const taken = await Promise.all(
    Array.from({ length: 8 }, (_, i) => takeMail(contextOf(db, `key-${i}`), owner, 3, NOON)),
  )
  expect(taken.filter(Boolean)).toHaveLength(3)
  expect(await countIn(db)).toBe(3)
})

test('the address is nowhere in the database', async () => {
  const db = await freshDb('ledger')
  await takeMail(contextOf(db, 'a'), owner, 1, NOON)
  expect(JSON.stringify(await db.get(`mails:${ownerHashOf(owner)}`))).not.toContain('example')
})
