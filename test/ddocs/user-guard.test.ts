import { expect, test } from 'vitest'
import { userMachines } from '../../ddocs/machines.ts'
import type { Doc, StoredDoc } from '../../sidecar/couch/documents.ts'
import { compactAway, createTestCouch, needs } from '../support/couchdb.ts'
import { guardedDb, tryBulk, tryPut } from './guarded-db.ts'
import { createUser } from './users.ts'

const theirs = { type: 'channel', name: 'diary', owner: 'bob@example.com', members: [], owner_role: 'owner-2' }
const own = { type: 'channel', name: 'photos', owner: 'ann@example.com', members: [], owner_role: 'owner-1' }
const existing: Doc[] = [
  { _id: 'device-1', type: 'device', state: 'active', user: 'device-1', owner_role: 'owner-1', device_id: 'device:1' },
  { ...own, _id: 'photos', state: 'ready', database: 'channel-1', syncpoint: 'http://a/channel-1' },
  { ...own, _id: 'left out', state: 'ready', database: 'channel-3', syncpoint: 'http://a/channel-3' },
  { ...own, _id: 'refused', state: 'error', owner_role: undefined, error: { code: 'a', reason: 'b' } },
  { ...theirs, _id: 'channel:2', state: 'ready', database: 'channel-2', syncpoint: 'http://a/channel-2' },
  { _id: 'subscription:photos', type: 'subscription', state: 'active', channel_id: 'photos' },
  {
    _id: 'subscription:channel:2',
    type: 'subscription',
    state: 'invite',
    channel_id: 'channel:2',
    from: 'bob@example.com',
  },
]

/** A user's device and existing documents; each row of a table gets its own. */
async function prepare() {
  const db = await guardedDb(userMachines, 'user')
  const { couch } = await createUser(['owner-1'])
  async function put(id: string, row: number): Promise<StoredDoc> {
    const doc = { ...existing.find(({ _id }) => _id === id)!, _id: `${id}-${row}` }
    return { ...doc, _rev: await createTestCouch().db(db.name).put(doc) }
  }
  return { db, couch, put }
}

const note = { note: { content_type: 'text/plain', data: 'YQ==' } }
const changes: readonly [string, string, object, string][] = [
  ['revokes a device', 'device-1', { state: 'revoked' }, 'fine'],
  ['adds no field to a device', 'device-1', { state: 'revoked', a: 'x' }, 'expected no fields but'],
  ['attaches nothing to a device', 'device-1', { state: 'revoked', _attachments: note }, 'expected no fields but'],
  ['attaches nothing to a channel', 'photos', { state: 'new', _attachments: note }, '_attachments: expected none'],
  [
    'makes no channel larger than the limit',
    'photos',
    { state: 'new', data: { a: 'x'.repeat(200_000) } },
    'expected up to 150000',
  ],
  ['revokes no device without its id', 'device-1', { state: 'revoked', device_id: undefined }, 'device_id: expected'],
  ['changes no device id', 'device-1', { state: 'revoked', device_id: 'device:2' }, 'device_id: expected'],
  ['changes the members of its channel', 'photos', { state: 'new', members: ['c@example.com'] }, 'fine'],
  [
    'may leave out the fields of the sidecar',
    'photos',
    { state: 'new', database: undefined, owner_role: undefined },
    'fine',
  ],
  ['moves no channel to another database', 'photos', { state: 'new', database: 'channel-2' }, 'database: expected'],
  ['forges no accepted channel', 'photos', { state: 'accepted' }, 'may be written in state'],
  ['forges no ready channel', 'photos', { state: 'ready' }, 'may be written in state'],
  ['closes its channel', 'photos', { state: 'closing', close: 'archive' }, 'fine'],
  ['closes a refused channel', 'refused', { state: 'closing', close: 'delete' }, 'fine'],
  ['closes no channel of another user', 'channel:2', { state: 'closing', close: 'archive' }, 'closing (by its owner)'],
  ['takes over no channel of another user', 'channel:2', { state: 'new', owner_role: 'owner-1' }, 'new (by its owner)'],
  ['deletes nothing', 'photos', { _deleted: true }, 'may be deleted by an admin only'],
  ['accepts an invitation', 'subscription:channel:2', { state: 'active' }, 'fine'],
  ['accepts an invitation and pauses it, both offline', 'subscription:channel:2', { state: 'paused' }, 'fine'],
  [
    'makes exceptions for devices',
    'subscription:photos',
    { state: 'active', devices: { 'device-1': 'paused' } },
    'fine',
  ],
  ['writes no field of the engine', 'subscription:photos', { state: 'paused', docstate: {} }, 'the field docstate'],
]

test('a device may change its user’s fields, and no others', async () => {
  const { db, couch, put } = await prepare()
  for (const [row, [name, id, change, expected]] of changes.entries()) {
    const written = JSON.parse(JSON.stringify({ ...(await put(id, row)), ...change })) as Doc
    expect(await tryPut(couch, db, written), name).toContain(expected)
  }
})

const made: readonly [string, Doc, string][] = [
  ['a channel', { _id: 'new', type: 'channel', state: 'new', name: 'x', owner: 'ann@example.com' }, 'fine'],
  ['a channel without a name, which is refused later', { _id: 'new', type: 'channel', state: 'new' }, 'fine'],
  ['no ready channel', { _id: 'new', type: 'channel', state: 'ready' }, 'begins in state new'],
  ['no channel with the role of another user', { _id: 'new', ...theirs, state: 'new' }, 'owner_role: expected'],
  ['no device', { _id: 'device-9', type: 'device', state: 'active' }, '(none: only the sidecar makes them)'],
  ['no document with an id of the sidecar', { _id: 'channel:9', type: 'note' }, 'the sidecar’s own'],
  [
    'no subscription larger than the limit',
    { _id: 's', type: 'subscription', state: 'new', channel_id: 'x', a: 'x'.repeat(200_000) },
    'expected up to 150000',
  ],
  ['a subscription', { _id: 's', type: 'subscription', state: 'new', channel_id: 'x' }, 'fine'],
  ['no invitation', { _id: 's', type: 'subscription', state: 'invite', channel_id: 'x' }, 'begins in state new'],
  ['a document of the app', { _id: 'setting', type: 'setting', color: 'red' }, 'fine'],
]

test('a document of the app that becomes a channel may not carry the sidecar’s fields', async () => {
  const { db, couch } = await prepare()
  const forged = { _id: 'a', database: 'channel-2', owner_role: 'owner-2' }
  const _rev = await couch.db(db.name).put({ ...forged, type: 'setting' })
  const answer = await tryPut(couch, db, { ...forged, _rev, type: 'channel', state: 'new' })
  expect(answer).toContain('database: expected what the sidecar wrote')
  expect(await tryPut(couch, db, { _id: 'a', _rev, type: 'channel', state: 'new' })).toBe('fine')
})

test('a device may create channels and subscriptions, but none of the sidecar’s documents', async () => {
  const { db, couch } = await prepare()
  for (const [row, [name, doc, expected]] of made.entries()) {
    expect(await tryPut(couch, db, { ...doc, _id: `${doc._id}-${row}` }), name).toContain(expected)
  }
})

test('several offline steps of a device arrive as one change', async () => {
  const { db, couch, put } = await prepare()
  async function later(id: string, change: object): Promise<Doc> {
    const { _rev, ...fields } = await put(id, 0)
    const [generation, hash] = String(_rev).split('-')
    return atRevision(JSON.parse(JSON.stringify({ ...fields, ...change })) as Doc, Number(generation) + 3, hash!)
  }
  const docs = [
    await later('subscription:channel:2', { state: 'ended' }),
    await later('subscription:photos', { state: 'new' }),
    await later('photos', { state: 'closing', close: 'delete' }),
    await later('left out', { state: 'closing', close: 'delete', database: undefined, owner_role: undefined }),
    atRevision({ _id: 'new', type: 'channel', state: 'new', name: 'x', owner: 'ann@example.com' }, 2, 'd'.repeat(32)),
  ]
  const answers = await tryBulk(couch, db, docs, { new_edits: false })
  expect([...answers.values()]).toEqual(docs.map(() => 'fine'))
})

test('an offline change is accepted after a compaction removed its base revision', async () => {
  needs('guarded revisions')
  const { db, couch, put } = await prepare()
  const admin = createTestCouch().db(db.name)
  const before: StoredDoc[] = []
  const branch = async (id: string, row: number, change: object): Promise<Doc> => {
    const doc = await put(id, row)
    before.push(doc)
    await admin.put({ ...doc, at: 'the server' })
    const { _rev, ...fields } = doc
    return atRevision(JSON.parse(JSON.stringify({ ...fields, ...change })) as Doc, 2, String(_rev).split('-')[1]!)
  }
  const rows: [Doc, string][] = [
    [await branch('photos', 0, { state: 'new', members: ['c@example.com'] }), 'fine'],
    [await branch('photos', 1, { state: 'new', database: undefined, owner_role: undefined }), 'fine'],
    [await branch('photos', 2, { state: 'closing', close: 'delete' }), 'fine'],
    [await branch('photos', 3, { state: 'accepted' }), 'may be written in state new or closing; got "accepted"'],
    [await branch('photos', 4, { state: 'new', data: { a: 'x'.repeat(200_000) } }), 'expected up to 150000'],
    [await branch('subscription:photos', 0, { state: 'paused' }), 'fine'],
    [await branch('subscription:channel:2', 0, { state: 'active' }), 'fine'],
    [await branch('subscription:channel:2', 1, { state: 'invite' }), 'may be written in state new or ended or '],
    [await branch('device-1', 0, { state: 'revoked' }), 'fine'],
    [await branch('device-1', 1, { state: 'active' }), 'may be written in state revoked; got "active"'],
    [await branch('device-1', 2, { state: 'revoked', name: 'x'.repeat(200_000) }), 'expected up to 150000'],
    [await branch('device-1', 3, { state: 'revoked', device_id: undefined }), 'fine'], // the id names the device
    [await branch('photos', 5, { type: 'device', state: 'revoked' }), 'the sidecar’s own'],
    [await branch('channel:2', 1, { type: 'device', state: 'revoked' }), 'the sidecar’s own'],
    [await branch('channel:2', 0, { state: 'closing', close: 'delete' }), 'the sidecar’s own'],
  ]
  await compactAway(admin, before)
  const docs = rows.map(([doc]) => doc)
  const answers = await tryBulk(couch, db, docs, { new_edits: false })
  for (const [{ _id }, expected] of rows) expect(answers.get(_id), _id).toContain(expected)
})

/** A revision as replication sends it: with the hashes of its ancestors, without their content. */
function atRevision(doc: Doc, start: number, before: string): Doc {
  const ids = [...['c', 'b', 'a'].map((digit) => digit.repeat(32)), before].slice(0, Math.min(4, start))
  return { ...doc, _rev: `${start}-${ids[0]}`, _revisions: { start, ids } }
}
