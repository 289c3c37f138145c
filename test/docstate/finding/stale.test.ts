/** What is read of a document while something later becomes of it. */
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createTestCouch, freshDb } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { startFaultyProxy, type Fault, type SeenRequest } from '../../support/faulty-proxy.ts'
import { createLatch, startRig, stateOf } from '../rig.ts'

/** What the server answers comes after a second; what it says is as old. */
const answeredLate: Fault = async (exchange) => {
  const answer = await exchange.forward()
  async function* late() {
    for await (const chunk of answer.body) {
      await sleep(1000)
      yield chunk
    }
  }
  await exchange.send({ ...answer, body: Readable.from(late()) })
  exchange.end()
}

const isRead = ({ path, body }: SeenRequest) => /_bulk_get|_all_docs/.test(path) && body.includes('"o"')

test('a document that is done while it is read is not done again', async () => {
  const db = await freshDb('stale')
  const proxy = await startFaultyProxy()
  let runs = 0
  await startRig(
    createTestCouch({ url: proxy.url }).db(db.name),
    (control) =>
      control.safe(
        'order',
        'paid',
        (doc) => {
          runs += 1
          if (runs > 1) return Promise.resolve({ ...doc, state: 'invoiced' })
          proxy.next(answeredLate, isRead)
          return Promise.reject(new Error('not yet'))
        },
        { backoff: { baseMs: 1000, capMs: 1000 } }, // later than the row of the failure, which would bring it too
      ),
    { random: () => 0.9 },
  )
  await eventually(() => expect(proxy.requests.some(({ path }) => path.endsWith('/_view/conflicts'))).toBe(true)) // swept
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(() => expect(proxy.requests.filter(isRead)).toHaveLength(1)) // the second try is due
  await db.put({ ...(await db.get('o')), note: 'an edit, which the feed brings' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  await sleep(1500)
  expect(runs).toBe(2)
})

test('a row of the feed that is older than what the list has brought is not taken', async () => {
  const db = await freshDb('stale')
  const proxy = await startFaultyProxy()
  const runs: string[] = []
  const { engine } = await startRig(
    createTestCouch({ url: proxy.url }).db(db.name),
    (control) =>
      control.safe('order', 'paid', (doc) => {
        runs.push(doc._id)
        return Promise.resolve({ ...doc, state: 'invoiced' })
      }),
    { resyncMs: 200 },
  )
  await db.put({ _id: 'first', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stateOf(db, 'first')).toBe('invoiced'))
  const written = createLatch()
  proxy.next(
    async (exchange) => {
      await written.opened
      await answeredLate(exchange)
    },
    ({ path }) => path.includes('/_changes'),
  )
  proxy.dropConnections()
  await eventually(() => expect(engine.health().following).toBe(false))
  await db.put({ _id: 'o', type: 'order', state: 'paid' })
  written.open()
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  await db.put({ _id: 'last', type: 'order', state: 'shipped' })
  await eventually(() => expect(engine.health().following).toBe(true))
  await sleep(1500)
  expect(runs).toEqual(['first', 'o'])
})
