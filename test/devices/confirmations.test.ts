/** The documents and results of the confirm page. The test acts as the handlers. */
import { beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../sidecar/core/clock.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import { hashCode, newCode } from '../../sidecar/devices/codes.ts'
import { createConfirmations } from '../../sidecar/devices/confirmations.ts'
import type { TriedCode } from '../../sidecar/devices/attempt-limit.ts'
import { guessesIdOf } from '../../sidecar/devices/device-names.ts'
import { hashingOf } from '../../sidecar/devices/passwords.ts'
import type { Confirmations } from '../../sidecar/devices/confirmations.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { answerOf, type Row } from '../support/answers.ts'

const code = newCode()
let db: Database

beforeEach(async () => {
  db = await freshDb('confirmations')
  const codes = [{ hash: hashCode(code), expires_at: '2099-01-01T00:00:00.000Z' }]
  const requested = { type: 'device', state: 'confirming', owner: 'owner@example.com', device_code: '1234' }
  await db.put({ _id: 'd', ...requested, confirmation: { codes } })
})

/** The page of one worker. It does not wait for the confirmation. */
const openPage = (patienceMs = 0) =>
  createConfirmations({ database: db, clock: systemClock, hashing: hashingOf(true), patienceMs })

const click = (page: Confirmations, fields: { deviceCode?: string; confirmCode?: string; deviceId?: string } = {}) => {
  const { signal } = new AbortController()
  return page.click({ deviceId: 'd', deviceCode: '1234', confirmCode: code, ...fields, signal })
}

const guessesOf = async () => ((await db.find(guessesIdOf('d')))?.guesses ?? []) as TriedCode[]

/** The ids of the stored confirm documents. */
async function written(): Promise<string[]> {
  const { rows } = await answerOf<{ rows: Row[] }>(createTestCouch(), { db: db.name, path: '_all_docs' })
  return rows.map(({ id }) => id).filter((id) => id !== 'd' && id !== guessesIdOf('d'))
}

/** Acts as the handlers do for the right codes. */
async function activate(confirmed_by: string): Promise<void> {
  const device = await db.get('d')
  const confirmation = { ...(device.confirmation as object), confirmed_by }
  await db.put({ ...device, state: 'active', user: 'device-1', owner_role: 'owner-1', confirmation })
}

test('the same codes make one document, for any number of clicks', async () => {
  const page = openPage()
  expect(await click(page)).toEqual({ kind: 'pending' })
  expect(await click(page)).toEqual({ kind: 'pending' })
  expect(await click(openPage())).toEqual({ kind: 'pending' })
  expect(await written()).toEqual([expect.stringMatching(/^confirm:[0-9a-f]{32}$/)])
})

test('each wrong device code counts once, and makes no document that would hold the link’s code', async () => {
  const page = openPage()
  const guesses = ['0001', '0002', '0002', '0003', '0004']
  for (const deviceCode of guesses) expect(await click(page, { deviceCode })).toEqual({ kind: 'refused' })
  expect(await db.get('d')).toMatchObject({ state: 'confirming' })
  expect(await guessesOf()).toHaveLength(4)
  await click(page, { deviceCode: '0005' })
  expect(await db.get('d')).toMatchObject({ state: 'error', error: { code: 'too_many_attempts' } })
  expect(await written()).toEqual([])
})

test('concurrent guesses are all counted', async () => {
  const page = openPage(10_000)
  const guesses = Array.from({ length: 8 }, (_, i) => click(page, { deviceCode: `000${i}` }))
  expect(await Promise.all(guesses)).toEqual(guesses.map(() => ({ kind: 'refused' })))
  expect(await db.get('d')).toMatchObject({ state: 'error', error: { code: 'too_many_attempts' } })
})

test('at most five of many concurrent guesses are compared, also with the right code among them', async () => {
  const page = openPage()
  const codes = Array.from({ length: 40 }, (_, i) => `${1195 + i}`) // 1234 is the last of them
  const outcomes = await Promise.all(codes.map((deviceCode) => click(page, { deviceCode })))
  const guesses = await guessesOf()
  expect(guesses).toHaveLength(5)
  const wasAmongThem = guesses.some(({ guess }) => guess === hashCode('1234'))
  expect(outcomes.at(-1)).toEqual({ kind: wasAmongThem ? 'pending' : 'refused' })
  expect(outcomes.slice(0, -1)).toEqual(codes.slice(1).map(() => ({ kind: 'refused' })))
  expect(await written()).toHaveLength(wasAmongThem ? 1 : 0)
})

test('another mail does not give more guesses, even if the device leaves out fields', async () => {
  const page = openPage()
  for (const deviceCode of ['0001', '0002', '0003', '0004']) await click(page, { deviceCode })
  const { confirmation, ...device } = await db.get('d')
  const again = await db.put({ ...device, state: 'new' })
  const other = newCode()
  const codes = [{ hash: hashCode(other), expires_at: '2099-02-01T00:00:00.000Z' }]
  await db.put({ ...device, _rev: again, state: 'confirming', confirmation: { codes } })
  expect(confirmation).toBeDefined()
  await click(page, { deviceCode: '0004', confirmCode: other })
  expect((await db.get('d')).state).toBe('confirming')
  await click(page, { deviceCode: '0005', confirmCode: other })
  const ended = await db.get('d')
  expect(ended).toMatchObject({ state: 'error', error: { code: 'too_many_attempts' } })
  expect((ended.error as { reason: string }).reason).toContain('after 2099-01-01')
  expect(await click(page, { confirmCode: other })).toEqual({ kind: 'refused' })
})

test('guesses are forgotten when their link expires', async () => {
  await db.put({
    _id: guessesIdOf('d'),
    type: 'guesses',
    guesses: Array.from({ length: 5 }, (_, i) => ({ guess: `${i}`, until: '2020-01-01T00:00:00.000Z' })),
  })
  expect(await click(openPage())).toEqual({ kind: 'pending' })
  expect(await written()).toHaveLength(1)
})

test('the right code of a confirmed device is accepted after wrong ones', async () => {
  const page = openPage()
  await click(page)
  const [id] = await written()
  await activate(id!)
  for (const deviceCode of ['0001', '0002', '0003', '0004', '0005', '0006']) {
    expect(await click(page, { deviceCode })).toEqual({ kind: 'refused' })
  }
  expect(await click(page)).toMatchObject({ kind: 'confirmed', password: expect.any(String) as string })
  expect(await guessesOf()).toHaveLength(5)
})

test.each(['new', 'error'])('a sent link is valid while its device is in state %s', async (state) => {
  await db.put({ ...(await db.get('d')), state })
  expect(await click(openPage(), { deviceCode: '9999' })).toEqual({ kind: 'refused' })
  expect(await click(openPage())).toEqual({ kind: 'pending' })
  expect(await written()).toHaveLength(1)
})

test.each([
  ['another link', { confirmCode: newCode() }],
  ['no link', { confirmCode: '' }],
  ['another device', { deviceId: 'e' }],
  ['_all_docs as the device', { deviceId: '_all_docs' }],
  ['the path .. as the device', { deviceId: '..' }],
])('a click with %s is refused, and writes nothing', async (_, fields) => {
  expect(await click(openPage(), fields)).toEqual({ kind: 'refused' })
  expect(await written()).toEqual([])
})

test('the next page shows, once, a password that the first page could not show', async () => {
  const page = openPage()
  await click(page)
  const [id] = await written()
  expect(await db.get(id!)).toMatchObject({ credentials: { derived_key: expect.any(String) as string } })
  await activate(id!)
  const shown = { kind: 'confirmed', user: 'device-1', password: expect.any(String) as string }
  expect(await click(page)).toEqual(shown)
  expect(await click(page)).toEqual({ kind: 'confirmed', user: 'device-1', password: undefined })
})

test('a worker that did not generate the password shows none', async () => {
  const [one, other] = [openPage(), openPage()]
  await click(one)
  await click(other)
  const [id] = await written()
  await activate(id!)
  expect(await click(other)).toEqual({ kind: 'confirmed', user: 'device-1', password: undefined })
  expect(await click(one)).toMatchObject({ password: expect.any(String) as string })
})

test('a password that was not used for the device is not shown', async () => {
  const page = openPage()
  await click(page)
  await activate('confirmed by the device itself')
  expect(await click(page)).toEqual({ kind: 'confirmed', user: 'device-1', password: undefined })
})

test('a device with its own credentials gets no others', async () => {
  const device = await db.get('d')
  const credentials = { password_scheme: 'pbkdf2', derived_key: '0'.repeat(40), salt: '00', iterations: 1000 }
  await db.put({ ...device, credentials })
  await click(openPage())
  const [id] = await written()
  expect(await db.get(id!)).not.toHaveProperty('credentials')
})

test('an aborted request ends its wait', async () => {
  const gone = new AbortController()
  const waiting = openPage(60_000).click({ deviceId: 'd', deviceCode: '1234', confirmCode: code, signal: gone.signal })
  await eventually(async () => expect(await written()).toHaveLength(1))
  gone.abort(new Error('gone'))
  await expect(waiting).rejects.toThrow('gone')
})
