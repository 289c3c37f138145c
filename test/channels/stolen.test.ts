/** Writes of a stolen device into its owner's database, where it may write until it is revoked. */
import { expect, test } from 'vitest'
import type { Database } from '../../sidecar/couch/database.ts'
import type { Doc, StoredDoc } from '../../sidecar/couch/documents.ts'
import { eventually } from '../support/eventually.ts'
import { channel, inState, startWithOwner } from './rig.ts'

async function start() {
  const all = await startWithOwner()
  const { couch, ann, own } = all
  await own.put(channel(ann, 'photos'))
  return { ...all, ready: await inState(couch, own.name, 'photos', 'ready') }
}

/** Adds a branch of any length by replication. The guard cannot compare it with the other branch. */
async function send(own: Database, doc: Doc & { _id: string }, length: number): Promise<void> {
  const ids = Array.from({ length }, (_, at) => `${'e'.repeat(30)}${String(10 + at)}`)
  await own.merge([{ ...doc, _rev: `${length}-${ids[0]!}`, _revisions: { start: length, ids } }])
}

async function close(own: Database): Promise<void> {
  await eventually(async () => {
    const { docstate: _entry, ...photos } = await own.get<StoredDoc & { docstate?: unknown }>('photos')
    await own.put({ ...photos, state: 'closing', close: 'delete' })
  })
}

test.each([
  ['a document of the app', { type: 'note', text: 'mine' }],
  ['a subscription', { type: 'subscription', state: 'paused', channel_id: 'photos' }],
])('the merge removes %s under the id of a channel, and the owner can close the channel', async (_, fields) => {
  const { couch, own, ready } = await start()
  await send(own, { _id: 'photos', ...fields }, 30)
  await eventually(async () => {
    expect(await couch.db(own.name).get('photos', { conflicts: true })).toMatchObject({
      ...{ type: 'channel', state: 'ready', database: ready.database, name: 'photos' },
    })
    expect((await couch.db(own.name).leaves('photos')).filter(({ _deleted }) => !_deleted)).toHaveLength(1)
  })
  await close(own)
  await inState(couch, own.name, 'photos', 'closed')
})

test('the owner can close a channel in an unknown state', async () => {
  const { couch, own, ready } = await start()
  await couch.db(own.name).put({ ...ready, state: 'paused' })
  await close(own)
  await inState(couch, own.name, 'photos', 'closed')
})

test('a resync of the account repairs a channel in an unknown state or of another type', async () => {
  const { couch, control, own, ready } = await start()
  for (const wedged of [
    { ...ready, state: 'paused' },
    { _id: 'photos', _rev: ready._rev, type: 'subscription', state: 'ready' },
  ]) {
    const { _rev } = await couch.db(own.name).get('photos')
    await couch.db(own.name).put({ ...wedged, _rev })
    await eventually(async () => control.put({ ...(await control.withPrefix('account:'))[0]!, state: 'changed' }))
    const mended = { type: 'channel', state: 'ready', database: ready.database }
    await eventually(async () => expect(await couch.db(own.name).get('photos')).toMatchObject(mended))
  }
})

test('only a subscription can have the id of a subscription', async () => {
  const { own } = await start()
  for (const fields of [{ type: 'note' }, { type: 'channel', state: 'new' }, {}])
    await expect(own.put({ _id: 'subscription:music', ...fields })).rejects.toThrow(/subscriptions/)
})
