/** A CouchDB that always answers later than a claim's lease allows. */
import { expect, test } from 'vitest'
import { createTestCouch, freshDb } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { delay, late, startFaultyProxy, type Fault, type SeenRequest } from '../../support/faulty-proxy.ts'
import { docstateIn, startRig } from '../rig.ts'

const LEASE_MS = 1000
const SLOW_MS = 1.25 * LEASE_MS

const isWrite = ({ path }: SeenRequest) => path.endsWith('/_bulk_docs')
const isFeed = ({ path }: SeenRequest) => path.endsWith('/_changes')

const slow: readonly (readonly [string, Fault, (request: SeenRequest) => boolean])[] = [
  ['stores at once and answers late', late(SLOW_MS), isWrite],
  ['stores late', delay(SLOW_MS), isWrite],
  ['answers everything late', late(SLOW_MS), (request) => !isFeed(request)],
]

test.each(slow)('a CouchDB that %s delays handlers, and stops none', async (_, fault, isSlow) => {
  const db = await freshDb('slow')
  const proxy = await startFaultyProxy()
  proxy.plan((request) => (isSlow(request) ? fault : undefined))
  const ran: string[] = []
  const effect = async (doc: { readonly _id: string }) => {
    ran.push(doc._id)
    return { ...doc, state: 'done' }
  }
  await startRig(
    createTestCouch({ url: proxy.url }).db(db.name),
    (control) => {
      control.safe('safe', 'new', effect)
      control.unsafe('park', 'new', effect)
      control.unsafe('retry', 'new', effect, { onLost: 'retry' })
    },
    { leaseMs: LEASE_MS },
  )
  const ids = ['safe', 'park', 'retry'].flatMap((type) => [1, 2].map((i) => `${type}-${i}`))
  await db.bulk(ids.map((_id) => JSON.stringify({ _id, type: _id.split('-')[0], state: 'new' })))
  await eventually(async () => {
    const open = (await db.getMany(ids)).filter(({ state }) => state !== 'done')
    expect(open.map((doc) => [doc._id, docstateIn(doc)])).toEqual([])
  })
  const unsafe = (id: string) => !id.startsWith('safe')
  expect(ran.filter(unsafe).toSorted()).toEqual(ids.filter(unsafe).toSorted())
})
