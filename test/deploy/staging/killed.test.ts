/**
 * A deploy dies at each of its steps, while queries run: from that step on it cannot reach CouchDB. The database keeps
 * the results of the steps before.
 */
import { expect, test } from 'vitest'
import { rollBack } from '../../../sidecar/deploy/roll-back.ts'
import { createTestCouch, needs } from '../../support/couchdb.ts'
import { cut, startFaultyProxy } from '../../support/faulty-proxy.ts'
import { sample, thoroughTest } from '../../support/thorough.ts'
import { pollAllTheTime, deployShop, openShop, shop, turns, type Shop } from './rig.ts'
import { isDelete, isPut, notes, type Step } from './steps.ts'

const verifies: Step = ({ path }, before) =>
  path.endsWith('/_design/app/_info') && before.some((request) => isPut('app')(request, []))

const steps: readonly (readonly [name: string, step: Step])[] = [
  ['creates its record', notes('began')],
  ['records that it stages', notes('staging')],
  ['writes the staged copy', isPut('sidecar:staged:app')],
  ['starts the build of the index', ({ query }) => query.get('update') === 'lazy'],
  ['queries the staged index', ({ path }) => path.includes('staged') && path.includes('_view')],
  ['writes a copy of the previous version', isPut('sidecar:previous:app')],
  ['records that the index is warm', notes('warmed')],
  ['records that it swaps', notes('swapping')],
  ['swaps the design document', isPut('app')],
  ['verifies the index', verifies],
  ['records that it cleans up', notes('cleaning')],
  ['removes the previous copy', isDelete('sidecar:previous:app')],
  ['removes the staged copy', isDelete('sidecar:staged:app')],
  ['removes old index files', ({ path }) => path.endsWith('/_view_cleanup')],
  ['removes its record', isDelete('sidecar:deploy')],
]

/** Lets a deploy die at this step: the server has done all steps before it, but not this one. */
async function dieAt(step: Step, { db }: Shop): Promise<void> {
  const proxy = await startFaultyProxy()
  const dying = new AbortController()
  let hit = false
  proxy.plan((request) => {
    hit ||= step(request, proxy.requests.slice(0, -1))
    if (hit) dying.abort(new Error('killed'))
    return hit ? cut : undefined
  })
  const deploying = deployShop(createTestCouch({ url: proxy.url }), db.name, shop(2), { signal: dying.signal })
  await expect(deploying).rejects.toThrow()
  expect(hit, 'the deploy reached the step').toBe(true)
}

test.each(sample(steps, 9))(
  'the next deploy finishes one that was killed when it %s; no query waits or fails',
  async (_, step) => {
    needs('index lag')
    const opened = await openShop()
    const { couch, db } = opened
    const polling = pollAllTheTime(opened)
    await dieAt(step, opened)
    await deployShop(couch, db.name, shop(2))
    await polling.stop()
    expect(turns(polling.answers)).toEqual([1, 2])
    expect(await opened.left()).toEqual([])
    expect(await db.get('_design/app')).toMatchObject({ rows: 2 })
  },
)

test.each(sample(steps, 9))(
  'a rollback reverts a deploy that was killed when it %s; no query waits or fails',
  async (_, step) => {
    needs('index lag')
    const opened = await openShop()
    const { couch, db } = opened
    const { _rev, ...before } = await db.get('_design/app')
    const polling = pollAllTheTime(opened)
    await dieAt(step, opened)
    await rollBack({ couch, databases: [db.name], deadAfterMs: 400 })
    await polling.stop()
    expect([[1], [1, 2, 1]]).toContainEqual(turns(polling.answers))
    expect(await opened.left()).toEqual([])
    expect(await db.get('_design/app')).toMatchObject(before)
  },
)

thoroughTest('a rollback restores attachments of any size', async () => {
  needs('index lag')
  const opened = await openShop()
  const { db, couch } = opened
  const page = Buffer.alloc(7_000_000, 'large').toString('base64') // more than the size limit of a document
  const _attachments = { 'page.html': { content_type: 'text/html', data: page } }
  await db.put({ ...(await db.get('_design/app')), _attachments })
  await dieAt(notes('cleaning'), opened)
  expect(await db.get('_design/app')).not.toHaveProperty('_attachments')
  await rollBack({ couch, databases: [db.name], deadAfterMs: 400 })
  const back = await db.get<{ _attachments: typeof _attachments }>('_design/app', { attachments: true })
  expect(back._attachments['page.html'].data === page).toBe(true)
})

test.each([1, 3])('a deploy of other files (%d) removes the staged copy of a killed deploy', async (rows) => {
  needs('index lag')
  const opened = await openShop()
  const polling = pollAllTheTime(opened)
  await dieAt(notes('swapping'), opened)
  await deployShop(opened.couch, opened.db.name, shop(rows))
  await polling.stop()
  expect(turns(polling.answers)).toEqual([...new Set([1, rows])])
  expect(await opened.left()).toEqual([])
})
