/** The commands that the forms of the operator page may send, and the accepted origins. */
import { Hono } from 'hono'
import { expect, test } from 'vitest'
import type { Status } from '../../ddocs/lib/status.ts'
import { orderFrom } from '../../sidecar/operator-page/actions.tsx'
import { maxSelected } from '../../sidecar/operator-page/document-filter.ts'
import { pathFrom, refuseForeign } from '../../sidecar/operator-page/sign-in.tsx'

test.each([
  [
    { verb: 'retry', db: 'shop', id: 'o1' },
    { verb: 'retry', db: 'shop', id: 'o1' },
  ],
  [
    { verb: 'retry', db: 'shop', type: '' },
    { verb: 'retry', filter: { db: 'shop' } },
  ],
  [
    { verb: 'pause', handler: 'order/paid', db: 'shop' },
    { verb: 'pause', handler: 'order/paid', change: { paused: true } },
  ],
  [
    { verb: 'set', handler: 'order/paid', concurrency: ' 4 ', limit: 'default' },
    { verb: 'set', handler: 'order/paid', change: { concurrency: 4, limit: null } },
  ],
  [
    { verb: 'revoke', id: 'd1', address: 'ann@example.com' },
    { verb: 'revoke', id: 'd1', address: 'ann@example.com' },
  ],
  [
    { verb: 'discard', status: 'parked', code: 'x', older: ' 2h ' },
    { verb: 'discard', filter: { status: 'parked', code: 'x', older: '2h' } },
  ],
  [
    { verb: 'undo', db: 'shop', id: 'o1' },
    { verb: 'undo', db: 'shop', id: 'o1' },
  ],
  [
    { verb: 'undo', type: 'order', code: 'x', older: '2h', at: 'now', by: 'ann' },
    { verb: 'undo', filter: { type: 'order', status: 'discarded' }, of: { at: 'now', by: 'ann' } },
  ],
])('%j is a valid command', (fields, order) => expect(orderFrom(fields)).toEqual(order))

test.each([
  [{}, 'expected one of retry, discard, undo, pause, resume, set, mail, revoke'],
  [{ verb: 'delete', db: 'shop' }, 'expected one of'],
  [{ verb: 'pause' }, 'expected one of'],
  [{ verb: 'set', handler: 'order/paid', concurrency: '0', limit: 'default' }, 'expected a whole number of runs'],
  [{ verb: 'set', handler: 'order/paid', concurrency: '1', limit: '600' }, 'such as 600/1m'],
  [{ verb: 'set', handler: 'order/paid' }, 'expected a whole number of runs'],
  [{ verb: 'revoke', id: 'd1' }, 'expected one of'],
  [{ verb: 'retry' }, 'expected a document, or a filter'],
  [{ verb: 'undo', type: 'order' }, 'when and by whom'],
  [{ verb: 'retry', id: 'o1' }, 'expected a document, or a filter'],
  [{ verb: 'retry', status: 'lost' }, 'There is no status lost'],
  [{ verb: 'retry', older: 'long' }, 'Expected a time such as 90s, 30m, 2h or 7d, got long'],
  [{ verb: 'retry', older: '999999999d' }, 'Expected a time'],
  [{ verb: 'retry', older: '2h', status: 'ready' }, 'Documents do not record since when they are ready'],
  [{ verb: 'discard', db: 'shop', status: 'ready' }, 'expected a type and a state'],
])('%j is no valid command', (fields, reason) => expect(() => orderFrom(fields)).toThrow(reason))

test('a filter states how many documents it matches', () => {
  const order = { type: 'order', state: 'paid' }
  const counts = [{ ...order, status: 'ready', count: 100 }]
  const stuck = (status: Status, count: number, code?: string) => [{ ...order, status, count, code, since: undefined }]
  const databases = [
    { name: 'shop-a', counted: { counts, stuck: stuck('parked', 2) } },
    { name: 'shop-b', counted: { counts: [], stuck: [...stuck('retry', 3, 'late'), ...stuck('failed', 7, 'gone')] } },
    { name: 'other', counted: { counts: [], stuck: stuck('parked', 50) } },
    { name: 'shop-c', counted: undefined },
  ]
  expect(maxSelected({ db: 'shop-*' }, databases)).toBe(12)
  expect(maxSelected({ db: 'shop-*', code: 'late' }, databases)).toBe(3)
  expect(maxSelected({ status: 'failed', state: 'paid' }, databases)).toBe(7)
  expect(maxSelected({ status: 'ready' }, databases)).toBe(100)
  expect(maxSelected({ type: 'none' }, databases)).toBe(0)
})

test.each(['/documents?db=a', '/', '/document?id=%2F'])('%s is a valid return path', (path) =>
  expect(pathFrom(path)).toBe(path),
)

test.each(['//evil.example', '/\\evil.example', 'https://evil.example', '', undefined, '/a b', '/\n', 5])(
  'the return path %j falls back to the overview',
  (path) => expect(pathFrom(path)).toBe('/'),
)

test.each([
  [200, {}],
  [200, { origin: 'http://sidecar:5985' }],
  [200, { 'sec-fetch-site': 'same-origin', origin: 'http://sidecar:5985' }],
  [403, { 'sec-fetch-site': 'cross-site' }],
  [403, { 'sec-fetch-site': 'same-site', origin: 'http://sidecar:5985' }],
  [403, { 'sec-fetch-site': 'none' }],
  [403, { origin: 'http://evil.example' }],
  [403, { origin: 'http://sidecar:5986' }],
  [403, { origin: 'null' }],
])('the answer is %i for a form with %j', async (status, headers) => {
  const app = new Hono()
  app.post('/act', (c) => {
    refuseForeign(c)
    return c.text('done')
  })
  app.onError((thrown, c) => c.text(thrown.message, (thrown as { status?: 403 }).status ?? 500))
  const init = { method: 'POST', headers: { host: 'sidecar:5985', ...headers } }
  expect((await app.request('http://sidecar:5985/act', init)).status).toBe(status)
})
