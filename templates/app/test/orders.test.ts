import assert from 'node:assert/strict'
import { test } from 'node:test'
import { run } from 'couchdb-sidecar/testing'
import handlers from '../handlers/orders.ts'

const order = { _id: 'o1', type: 'order', state: 'new', email: 'ann@example.com', items: [{ name: 'tea', cents: 450 }] }

test('an order gets its total', async () => {
  const { next } = await run(handlers, order)
  assert.equal(next?.state, 'priced')
  assert.equal(next?.total, 450)
})

test('an order without items is refused', async () => {
  const { failure } = await run(handlers, { ...order, items: [] })
  assert.equal(failure?.code, 'no_items')
})

test('a priced order is confirmed by a mail', async () => {
  const { next, mails } = await run(handlers, { ...order, state: 'priced', total: 450 })
  assert.equal(next?.state, 'confirmed')
  assert.equal(mails[0]?.text, 'Thank you. You pay 4.5 euros.')
})
