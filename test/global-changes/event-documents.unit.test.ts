import { expect, test } from 'vitest'
import { eventId, parseEventId } from '../../sidecar/global-changes/event-documents.ts'

test.each([
  ['created:orders', { event: 'created', database: 'orders', account: '_admin' }],
  ['updated:acme/orders', { event: 'updated', database: 'acme/orders', account: 'acme' }],
  ['deleted:acme/a/b', { event: 'deleted', database: 'acme/a/b', account: 'acme' }],
  ['updated:_users', { event: 'updated', database: '_users', account: '_admin' }],
  ['updated:a:b', { event: 'updated', database: 'a:b', account: '_admin' }],
])('%s', (id, parsed) => {
  expect(parseEventId(id)).toEqual(parsed)
  expect(eventId(parsed.event as 'created', parsed.database)).toBe(id)
})

test.each(['', 'orders', 'updated:', 'renamed:orders', '_design/updated:orders', ':orders'])(
  '“%s” is no event id',
  (id) => {
    expect(parseEventId(id)).toBeUndefined()
  },
)
