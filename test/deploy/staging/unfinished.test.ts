/** The documents of an interrupted deploy, and their treatment by later deploys and rollbacks. */
import { expect, test } from 'vitest'
import type { Leaf } from '../../../sidecar/couch/documents.ts'
import { rollBack } from '../../../sidecar/deploy/roll-back.ts'
import { createTestCouch, needs } from '../../support/couchdb.ts'
import { refuse, startFaultyProxy } from '../../support/faulty-proxy.ts'
import { errorOf } from '../app.ts'
import { deployShop, openShop, shop, type Shop } from './rig.ts'
import { isPut, notes, type Step } from './steps.ts'

/** A deploy that fails at this step. */
async function breakOffAt(step: Step, { db }: Shop, files: Record<string, string>): Promise<void> {
  const proxy = await startFaultyProxy()
  let hit = false
  proxy.plan((request) => {
    hit ||= step(request, proxy.requests.slice(0, -1))
    return hit ? refuse(400) : undefined
  })
  await errorOf(deployShop(createTestCouch({ url: proxy.url }), db.name, files))
  expect(hit, 'the deploy reached the step').toBe(true)
}

const takeBack = ({ couch, db }: Shop) => rollBack({ couch, databases: [db.name], deadAfterMs: 400 })

test('a later --prune removes unfinished documents, and a rollback does not restore them', async () => {
  needs('index lag')
  const opened = await openShop()
  const { couch, db, left } = opened
  await breakOffAt(isPut('app'), opened, shop(2))
  await deployShop(couch, db.name, { 'plain/rows.json': '1' }, { prune: true })
  expect(await left()).toEqual([])
  await takeBack(opened)
  expect(await db.find('_design/app')).toBeUndefined()
})

test('a deploy record with a conflict is removed with all its revisions', async () => {
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

test('deploy does not change a design document whose name resembles a staged copy', async () => {
  needs('index lag')
  const { couch, db, left } = await openShop()
  await db.put({ _id: '_design/sidecar:notes' })
  await deployShop(couch, db.name, shop(2))
  expect(await left()).toEqual(['_design/sidecar:notes'])
})

test('a rollback does not change documents that were edited meanwhile, and reports them', async () => {
  needs('index lag')
  const opened = await openShop()
  const { couch, db, left } = opened
  const files = { ...shop(2), 'made/rows.json': '2', 'plain/rows.json': '2' }
  await deployShop(couch, db.name, { ...shop(1), 'plain/rows.json': '1' })
  await breakOffAt(notes('cleaning'), opened, files)
  for (const id of ['_design/app', '_design/made']) await db.put({ ...(await db.get(id)), mended: true })
  const [report] = await takeBack(opened)
  expect(report!.ddocs.map(({ kind, id }) => [id, kind])).toEqual([
    ...[
      ['_design/app', 'left'],
      ['_design/made', 'left'],
      ['_design/plain', 'updated'],
    ],
  ])
  for (const id of ['_design/app', '_design/made']) expect(await db.get(id)).toMatchObject({ rows: 2, mended: true })
  expect(await db.get('_design/plain')).toMatchObject({ rows: 1 })
  expect(await left()).toEqual([])
})

test('a rollback still reverts an unfinished deploy after another deploy of other design documents', async () => {
  needs('index lag')
  const opened = await openShop()
  const { couch, db, left } = opened
  const named = (name: string, files: Record<string, string>) =>
    Object.fromEntries(Object.entries(files).map(([path, text]) => [path.replace('app/', `${name}/`), text]))
  await deployShop(couch, db.name, { ...shop(1), ...named('second', shop(1)), ...named('other', shop(1)) })
  const rows = async () => (await db.withPrefix('_design/')).flatMap(({ rows }) => (rows === undefined ? [] : [rows]))
  await breakOffAt(isPut('second'), opened, { ...shop(2), ...named('second', shop(2)) })
  await deployShop(couch, db.name, named('other', shop(3)))
  expect(await rows()).toEqual([2, 3, 1])
  await takeBack(opened)
  expect(await rows()).toEqual([1, 3, 1])
  expect(await left()).toEqual([])
})
