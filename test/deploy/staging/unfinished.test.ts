/** What a run leaves behind that breaks off, and what others do then. */
import { expect, test } from 'vitest'
import type { Leaf } from '../../../sidecar/couch/documents.ts'
import { rollBack } from '../../../sidecar/deploy/roll-back.ts'
import { createTestCouch, needs } from '../../support/couchdb.ts'
import { refuse, startFaultyProxy } from '../../support/faulty-proxy.ts'
import { errorOf } from '../app.ts'
import { deployShop, openShop, shop, type Shop } from './rig.ts'
import { isPut, notes, type Step } from './steps.ts'

/** A deploy that comes to this step, and no further. */
async function breakOffAt(step: Step, { db }: Shop, files: Record<string, string>): Promise<void> {
  const proxy = await startFaultyProxy()
  let hit = false
  proxy.plan((request) => {
    hit ||= step(request, proxy.requests.slice(0, -1))
    return hit ? refuse(400) : undefined
  })
  await errorOf(deployShop(createTestCouch({ url: proxy.url }), db.name, files))
  expect(hit, 'it came to this step').toBe(true)
}

const takeBack = ({ couch, db }: Shop) => rollBack({ couch, databases: [db.name], deadAfterMs: 400 })

test('a later --prune removes what was unfinished, and no rollback brings it back', async () => {
  needs('index lag')
  const opened = await openShop()
  const { couch, db, left } = opened
  await breakOffAt(isPut('app'), opened, shop(2))
  await deployShop(couch, db.name, { 'plain/rows.json': '1' }, { prune: true })
  expect(await left()).toEqual([])
  await takeBack(opened)
  expect(await db.find('_design/app')).toBeUndefined()
})

test('a record with a conflict goes as a whole', async () => {
  needs('index lag')
  const opened = await openShop()
  const { couch, db, left } = opened
  await breakOffAt(notes('cleaning'), opened, shop(2))
  const record = await db.get<Leaf>('_design/sidecar:deploy', { attachments: true })
  await db.merge([{ ...record, _rev: '9-abc', _revisions: { start: 9, ids: ['abc', 'ab', 'a'] } }])
  await deployShop(couch, db.name, shop(3))
  expect(await left()).toEqual([])
  await takeBack(opened)
  expect(await db.get('_design/app')).toMatchObject({ rows: 3 })
})

test('a design document that only has such a name is nobody’s copy', async () => {
  needs('index lag')
  const { couch, db, left } = await openShop()
  await db.put({ _id: '_design/sidecar:notes' })
  await deployShop(couch, db.name, shop(2))
  expect(await left()).toEqual(['_design/sidecar:notes'])
})
