/** Kills the program during a swap; the next deploy continues. `killed.test.ts` tests every step. */
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { launch } from '../../acceptance/launch.ts'
import { needs } from '../../support/couchdb.ts'
import { silence, startFaultyProxy } from '../../support/faulty-proxy.ts'
import { ddocFolder } from '../folder.ts'
import { pollAllTheTime, deployShop, openShop, shop, turns } from './rig.ts'
import { notes } from './steps.ts'

test('the next deploy finishes one whose process was killed during the swap; no query waits or fails', async () => {
  needs('index lag')
  const opened = await openShop()
  const polling = pollAllTheTime(opened)
  const proxy = await startFaultyProxy()
  const args = ['deploy', '--ddocs', ddocFolder(shop(2)), '--database', opened.db.name]
  const { child, kill } = launch(args, { COUCHDB_URL: proxy.url })
  onTestFinished(kill)
  const gone = once(child, 'exit')
  let killed = false
  proxy.plan((request) => {
    if (killed) return silence
    killed = notes('swapping')(request, proxy.requests.slice(0, -1))
    return killed ? kill : undefined
  })
  await gone
  await deployShop(opened.couch, opened.db.name, shop(2))
  await polling.stop()
  expect(turns(polling.answers)).toEqual([1, 2])
  expect(await opened.left()).toEqual([])
  expect(await opened.db.get('_design/app')).toMatchObject({ rows: 2 })
})
