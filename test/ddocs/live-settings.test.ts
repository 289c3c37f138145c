import { expect, test } from 'vitest'
import {
  liveSettings,
  settingsFaults,
  settingsId,
  fits,
  parts,
  type LiveSetting,
} from '../../ddocs/lib/live-settings.ts'
import { createTestCouch } from '../support/couchdb.ts'
import { guardedDb, newDevice, tryBulk, tryPut } from './guarded-db.ts'
import { createAnonymous, createUser } from './users.ts'

const _id = 'config:global_changes'
const KEYS = 'type, by, update_db, max_event_delay, max_write_delay, sweep_interval'
const partExpected = `_id: expected ${parts.map(settingsId).join(' or ')}`
const delayed = (key: string, came: string, from = 0) =>
  `${key}: expected a whole number of milliseconds from ${from} to 86400000, got ${came}`

const handlers = {
  'order/paid': { paused: true },
  'device/new': { concurrency: 4, limit: { count: 600, per: '1m' } },
  'order/new': {},
}
const ofPaid = (value: unknown) => ({ _id: 'config:handlers', handlers: { 'order/paid': value } })
const paid = 'handlers["order/paid"]'
const aRate = "a count and a time such as { count: 600, per: '1m' }"

const accepted: readonly [string, Record<string, unknown>][] = [
  ['no field', {}],
  ['one field', { update_db: false }],
  ['its type', { type: 'config', max_event_delay: 50 }],
  ['names and globs', { _id: 'config:ken', ignore: ['orders', 'tmp-*'], batch_channels: 0 }],
  ['handlers that are paused, and slowed down', { _id: 'config:handlers', handlers }],
  ['all fields', { update_db: true, max_event_delay: 0, max_write_delay: 86_400_000, sweep_interval: 1000 }],
]

const refused: readonly [string, Record<string, unknown>, string][] = [
  ['an unknown part', { _id: 'config:nonsense' }, `${partExpected}, got "config:nonsense"`],
  ['no part', { _id: 'config:' }, `${partExpected}, got "config:"`],
  ['a part named constructor', { _id: 'config:constructor' }, `${partExpected}, got "config:constructor"`],
  ['a part in upper case', { _id: 'config:Global_Changes' }, `${partExpected}, got "config:Global_Changes"`],
  ['an unknown key', { max_evnt_delay: 5 }, `expected no fields but ${KEYS}, got "max_evnt_delay"`],
  ['a number as name', { update_db: true, by: 5 }, 'by: expected a name or nothing, got 5'],
  ['a key named constructor', { constructor: 5 }, `expected no fields but ${KEYS}, got "constructor"`],
  ['an attachment', { _attachments: { a: { data: '', content_type: 'a/b' } } }, 'got "_attachments"'],
  ['another type', { type: 'device' }, 'type: expected "config" or nothing, got "device"'],
  ['text instead of a boolean', { update_db: 'false' }, 'update_db: expected true or false, got "false"'],
  ['a number instead of a boolean', { update_db: 0 }, 'update_db: expected true or false, got 0'],
  ['null instead of a boolean', { update_db: null }, 'update_db: expected true or false, got null'],
  ['text instead of a number', { max_event_delay: '50' }, delayed('max_event_delay', '"50"')],
  ['null instead of a number', { max_event_delay: null }, delayed('max_event_delay', 'null')],
  ['an array instead of a number', { max_event_delay: [50] }, delayed('max_event_delay', 'an array')],
  ['an object instead of a number', { max_event_delay: { ms: 50 } }, delayed('max_event_delay', 'an object')],
  ['a boolean instead of a number', { max_write_delay: true }, delayed('max_write_delay', 'true')],
  ['a negative delay', { max_write_delay: -1 }, delayed('max_write_delay', '-1')],
  ['half a millisecond', { max_event_delay: 0.5 }, delayed('max_event_delay', '0.5')],
  ['more than a day', { max_event_delay: 86_400_001 }, delayed('max_event_delay', '86400001')],
  ['a number above the limit', { max_write_delay: 1e308 }, delayed('max_write_delay', '1e+308')],
  ['text instead of a list', { _id: 'config:ken', ignore: 'orders' }, 'ignore: expected a list of names of databases'],
  ['a list with a number', { _id: 'config:ken', ignore: ['a', 1] }, 'ignore: expected a list of names of databases'],
  ['a list with an empty name', { _id: 'config:ken', ignore: [''] }, 'ignore: expected a list of names of databases'],
  ['an empty batch', { _id: 'config:ken', batch_size: 0 }, 'batch_size: expected a whole number of changes from 1 to'],
  ['a list of handlers', { _id: 'config:handlers', handlers: ['order/paid'] }, 'got an array'],
  ['a boolean instead of a handler', ofPaid(true), `${paid}: expected an object, got true`],
  ['text as a pause', ofPaid({ paused: 'yes' }), `${paid}.paused: expected true or false, got "yes"`],
  [
    'a concurrency of zero',
    ofPaid({ concurrency: 0 }),
    `${paid}.concurrency: expected a whole number of runs from 1 to`,
  ],
  [
    'an option that only the code can set',
    ofPaid({ attempts: 1 }),
    `${paid}: expected no keys but paused, concurrency, limit, got`,
  ],
  ['a limit without a time', ofPaid({ limit: { count: 1 } }), `${paid}.limit: expected ${aRate}, got an object`],
  ['a limit for zero seconds', ofPaid({ limit: { count: 1, per: '0s' } }), `${paid}.limit: expected ${aRate}`],
  ['a limit of zero runs', ofPaid({ limit: { count: 0, per: '1s' } }), `${paid}.limit: expected ${aRate}`],
  ['a limit as text', ofPaid({ limit: 'slow' }), `${paid}.limit: expected ${aRate}, got "slow"`],
  [
    'a limit with another key',
    ofPaid({ limit: { count: 1, per: '1s', burst: 2 } }),
    `${paid}.limit: expected ${aRate}`,
  ],
  ['a sweep interval of zero', { sweep_interval: 0 }, delayed('sweep_interval', '0', 1000)],
  ['a sweep interval below a second', { sweep_interval: 999 }, delayed('sweep_interval', '999', 1000)],
  [
    'two faults',
    { update_db: 1, sweep_interval: 1 },
    `update_db: expected true or false, got 1; ${delayed('sweep_interval', '1', 1000)}`,
  ],
]

test.each(accepted)('an admin may write settings with %s', async (_, fields) => {
  const db = await guardedDb()
  expect(await tryPut(createTestCouch(), db, { _id, ...fields })).toBe('fine')
})

test('invalid settings are refused to admins too, each with its reason', async () => {
  const db = await guardedDb()
  const answers = await Promise.all(refused.map(([, doc]) => tryPut(createTestCouch(), db, { _id, ...doc })))
  refused.forEach(([title, , reason], index) => expect(answers[index], title).toContain(reason))
  expect(await db.withPrefix('config:')).toEqual([])
})

test('invalid settings are refused by replication and in a bulk, too', async () => {
  const db = await guardedDb()
  const couch = createTestCouch()
  const wrong = { _id, update_db: 'off' }
  const replicated = { ...wrong, _rev: '1-a', _revisions: { start: 1, ids: ['a'] } }
  expect((await tryBulk(couch, db, [wrong])).get(_id)).toContain('update_db: expected true or false')
  expect((await tryBulk(couch, db, [replicated], { new_edits: false })).get(_id)).toContain('update_db: expected')
  const right = { _id, update_db: false, _rev: '3-a', _revisions: { start: 3, ids: ['a', 'b', 'c'] } }
  expect((await tryBulk(couch, db, [right], { new_edits: false })).get(_id)).toBe('fine')
})

test('an admin may change and delete settings, also those of an unknown part', async () => {
  const db = await guardedDb()
  const couch = createTestCouch()
  const first = await db.put({ _id, update_db: false })
  expect(await tryPut(couch, db, { _id, _rev: first, update_db: 'on' })).toContain('update_db: expected')
  const second = await db.put({ _id, _rev: first, update_db: true })
  expect(await tryPut(couch, db, { _id, _rev: second, _deleted: true })).toBe('fine')
  expect(await tryPut(couch, db, { _id: 'config:nonsense', _deleted: true })).toBe('fine')
  expect(await tryPut(couch, db, { _id, max_event_delay: 50 })).toBe('fine')
})

test('only a server admin may write settings', async () => {
  const db = await guardedDb()
  const _rev = await db.put({ _id, max_event_delay: 50 })
  const head = await createUser()
  const body = { members: { names: [], roles: [] }, admins: { names: [head.name], roles: [] } }
  await createTestCouch().request({ method: 'PUT', db: db.name, path: '_security', body })
  const writes = [
    { _id, _rev, update_db: false },
    { _id, _rev, type: 'config', update_db: false },
    { _id, _rev, _deleted: true },
    { ...newDevice, _id, _rev },
    { ...newDevice, _id: 'config:nonsense' },
  ]
  for (const couch of [createAnonymous(), (await createUser()).couch, head.couch]) {
    for (const doc of writes) expect(await tryPut(couch, db, doc), JSON.stringify(doc)).not.toBe('fine')
  }
  expect(await db.get(_id)).toEqual({ _id, _rev, max_event_delay: 50 })
})

test('every default is valid, and the largest number fits a timer', () => {
  for (const part of parts) {
    const defaults = Object.entries<LiveSetting>(liveSettings[part]).map(([key, setting]) => [key, setting.default])
    expect(settingsFaults({ _id: settingsId(part), ...(Object.fromEntries(defaults) as object) })).toEqual([])
    for (const setting of Object.values<LiveSetting>(liveSettings[part])) {
      expect(fits(setting, setting.default)).toBe(true)
      if (setting.kind === 'whole-number') expect(setting.max * 1.2).toBeLessThan(2 ** 31)
    }
  }
})
