/** The counts of the operator page while one database is slow. */
import { expect, test } from 'vitest'
import { systemClock } from '../../sidecar/core/clock.ts'
import { createSurvey } from '../../sidecar/couch/survey.ts'
import { createCounts } from '../../sidecar/operator-page/per-database.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { refuse, silence, startFaultyProxy } from '../support/faulty-proxy.ts'
import { installDocstate } from '../docstate/install.ts'

const never = new AbortController().signal

async function orders(count: number) {
  const db = await freshDb('counted')
  await installDocstate(db, {})
  for (let n = 0; n < count; n++) await db.put({ _id: `o${n}`, type: 'order', state: 'paid' })
  return db
}

test('a database with a missing index delays no other and is counted once its index is built', async () => {
  const [slow, quick, proxy] = [await orders(1), await orders(3), await startFaultyProxy()]
  let isSlow = true
  proxy.plan(({ path }) => (isSlow && path.startsWith(`/${slow.name}/_design`) ? silence : undefined))
  const couch = createTestCouch({ url: proxy.url })
  const counts = createCounts({
    ...{ couch, survey: createSurvey(couch), clock: systemClock, signal: never },
    patterns: [slow.name, quick.name],
  })
  expect((await counts.look()).isWhole).toBe(false)
  await eventually(async () => {
    const { databases, total, isWhole } = await counts.look()
    expect([total, isWhole]).toEqual([2, false])
    expect(databases.map(({ name, counted }) => [name, counted?.counts[0]?.count])).toEqual([[quick.name, 3]])
  })
  isSlow = false
  counts.expire()
  await eventually(async () => {
    expect(await counts.look()).toMatchObject({ isWhole: true, trouble: undefined })
  })
})

test('only changed databases are counted again, and one count answers many requests', async () => {
  const [one, two, proxy] = [await orders(1), await orders(1), await startFaultyProxy()]
  const couch = createTestCouch({ url: proxy.url })
  const counts = createCounts({
    ...{ couch, survey: createSurvey(couch), clock: systemClock, signal: never },
    patterns: [one.name, two.name],
  })
  const viewsOf = (name: string) => proxy.requests.filter(({ path }) => path.startsWith(`/${name}/_design`)).length
  await eventually(async () => expect((await counts.look()).isWhole).toBe(true))
  await one.put({ _id: 'more', type: 'order', state: 'paid' })
  counts.expire()
  await eventually(async () => {
    const looks = await Promise.all(Array.from({ length: 20 }, () => counts.look()))
    const last = looks.at(-1)!.databases.find(({ name }) => name === one.name)
    expect(last?.counted?.counts[0]?.count).toBe(2)
  })
  expect([viewsOf(one.name), viewsOf(two.name)]).toEqual([2, 1])
})

test('the counts name an unreadable database and include all others', async () => {
  const [broken, well, proxy] = [await orders(1), await orders(2), await startFaultyProxy()]
  let isBroken = true
  proxy.plan(({ path }) => (isBroken && path.startsWith(`/${broken.name}/_design`) ? refuse(500) : undefined))
  const couch = createTestCouch({ url: proxy.url })
  const counts = createCounts({
    ...{ couch, survey: createSurvey(couch), clock: systemClock, signal: never },
    patterns: [broken.name, well.name],
  })
  await eventually(async () => {
    const { databases, isWhole, unread } = await counts.look()
    expect([databases.map(({ name }) => name), isWhole]).toEqual([[well.name], false])
    expect(unread).toEqual([`${broken.name} cannot be read: CouchDB reports an internal error, see its log (server).`])
  })
  isBroken = false
  counts.expire()
  await eventually(async () => expect(await counts.look()).toMatchObject({ isWhole: true, unread: [] }))
})
