/** Handlers that run as external programs: the requests to them, and the result of each answer. */
import type { Machines } from '../../ddocs/machine.ts'
import { onTestFinished, expect, test } from 'vitest'
import type { HandlerOptions } from '../../sidecar/index.ts'
import { bindWebhooks } from '../../sidecar/webhooks/bind-webhooks.ts'
import { keyFrom } from '../../sidecar/webhooks/sign.ts'
import { createWebhookClient } from '../../sidecar/webhooks/webhook-client.ts'
import { webhook } from '../../sidecar/webhooks/webhook.ts'
import { joinHandlers } from '../../sidecar/docstate/handlers.ts'
import { createControl } from '../../sidecar/docstate/control.ts'
import { freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { docstateIn, startRig, stateOf } from '../docstate/rig.ts'
import { json, SECRET, startReceiver, verified, type Received } from './receiver.ts'

type Reply = Parameters<typeof startReceiver>[0]

const OLDER = `whsec_${Buffer.from('the secret of before, also long enough').toString('base64')}`

/** A database with an engine whose only handler calls the receiver. */
async function startWebhook(reply: Reply, options: HandlerOptions = {}, { secrets = [SECRET], url = '' } = {}) {
  const db = await freshDb('webhooks')
  const receiver = await startReceiver(reply)
  const client = createWebhookClient({ keys: secrets.map((one) => keyFrom(one)!), version: '1.2.3', now: Date.now })
  const control = createControl<Machines>({})
  control.unsafe('order', 'paid', webhook(url || `${receiver.url}/order-paid?tenant=a`), {
    backoff: { baseMs: 1, capMs: 1 },
    ...options,
  })
  const table = bindWebhooks(joinHandlers([control]), client)
  await startRig(db, () => undefined, { table })
  onTestFinished(() => client.close())
  const put = (more: object = {}) => db.put({ _id: 'o', type: 'order', state: 'paid', ...more })
  return { db, put, ...receiver }
}

const invoiced: Reply = (received, response) => json(response, 200, { ...verified(received), state: 'invoiced' })

test('the document is sent with a signature, and the answer becomes its next version', async () => {
  const { db, put, received } = await startWebhook(invoiced)
  await put({ total: 12, name: 'Ärger \u{1f600}' })
  await eventually(async () => expect(await db.get('o')).toMatchObject({ state: 'invoiced', total: 12 }))
  expect(received).toHaveLength(1)
  const [{ path, headers }] = received as [Received]
  expect(path).toBe('/order-paid?tenant=a')
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'sidecar-attempt': '1',
    'sidecar-database': db.name,
    'user-agent': 'couchdb-sidecar/1.2.3',
  })
  expect(verified(received[0]!)).toMatchObject({ _id: 'o', name: 'Ärger \u{1f600}', docstate: { claim: {} } })
})

test('during a secret rotation, receivers with either secret accept the call', async () => {
  const { put, received } = await startWebhook(invoiced, {}, { secrets: [SECRET, OLDER] })
  await put()
  await eventually(() => expect(received).toHaveLength(1))
  for (const secret of [SECRET, OLDER]) expect(verified(received[0]!, secret)).toMatchObject({ _id: 'o' })
  const other = `whsec_${Buffer.from('a secret that no receiver has got').toString('base64')}`
  expect(() => verified(received[0]!, other)).toThrow('No matching signature')
})

test.each([
  ['503', (_: Received, response) => json(response, 503, {})],
  ['429 with Retry-After', (_: Received, response) => json(response, 429, {}, { 'retry-after': '1' })],
  ['a connection that is cut', (_: Received, response) => void response.destroy()],
  ['half an answer', (_: Received, response) => void response.writeHead(200, { 'content-length': 99 }).end('{"a"')],
] satisfies [string, Reply][])('after %s the call is retried with the same id', async (_, fail) => {
  let calls = 0
  const { db, put, received } = await startWebhook((one, response) =>
    calls++ === 0 ? fail(one, response) : invoiced(one, response),
  )
  await put()
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  expect(received.map(({ headers }) => headers['sidecar-attempt'])).toEqual(['1', '2'])
  expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  expect(verified(received[1]!)).toMatchObject({ _id: 'o' })
})

test.each([
  ['after seconds', () => '3600'],
  ['at a date', () => new Date(Date.now() + 3_600_000).toUTCString()],
])('Retry-After %s sets the time of the next attempt', async (_, retryAfter) => {
  const problem = { type: 'https://example.com/problems/rate_limited', title: 'Slow down', detail: 'two a minute' }
  const { db, put } = await startWebhook((_one, response) =>
    json(response, 429, problem, { 'retry-after': retryAfter() }),
  )
  await put()
  await eventually(async () => expect(docstateIn(await db.get('o'))?.failure).toMatchObject({ code: 'rate_limited' }))
  const docstate = docstateIn(await db.get('o'))!
  expect(docstate.failure).toMatchObject({ reason: expect.stringContaining('429: two a minute') as string })
  const inMs = Date.parse(docstate.retry_at as string) - Date.now()
  expect(inMs).toBeGreaterThan(3_500_000)
  expect(inMs).toBeLessThan(3_700_000)
})

test.each([
  ['204', (response) => void response.writeHead(204).end()],
  ['200 without a body', (response) => void response.writeHead(200).end()],
] satisfies [string, (response: Parameters<Reply>[1]) => void][])(
  'the answer %s marks the document as handled without a new state',
  async (_, reply) => {
    const { db, put, received } = await startWebhook((_one, response) => reply(response))
    await put()
    await eventually(async () => expect(docstateIn(await db.get('o'))).toHaveProperty('handled'))
    expect(received).toHaveLength(1)
    expect(await stateOf(db, 'o')).toBe('paid')
  },
)

const large = 'x'.repeat(9_000_000)

test.each([
  ['a problem', 422, { type: 'https://example.com/problems/no_stock', detail: 'none left' }, 'no_stock', 'none left'],
  ['a problem with a code', 409, { code: 'card_declined', title: 'Declined' }, 'card_declined', 'Declined'],
  ['a refusal without a body', 400, undefined, 'http_400', 'nothing'],
  ['a redirect', 302, undefined, 'redirected', 'expected an answer, got a redirect'],
  ['text', 200, 'thanks', 'bad_answer', 'got "\\"thanks\\""'],
  ['a list', 200, [1], 'bad_answer', 'expected the next document as JSON'],
  ['a document of another type', 200, { _id: 'o', type: 'bill', state: 'new' }, 'bad_result', 'type'],
  ['no state', 200, { _id: 'o', type: 'order' }, 'bad_result', 'state'],
  ['nine megabytes', 200, { large }, 'bad_answer', 'expected at most 8000000 bytes'],
] as const)('the answer %s puts the document into error without a retry', async (_, status, body, code, reason) => {
  const { db, put, received } = await startWebhook((_one, response) => {
    if (body === undefined) response.writeHead(status, { location: 'http://127.0.0.1:1/' }).end()
    else json(response, status, body)
  })
  await put()
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('error'))
  expect((await db.get('o')).error).toMatchObject({ code, reason: expect.stringContaining(reason) as string })
  expect(received, 'no second attempt').toHaveLength(1)
})

test('a webhook without answer ends with the handler’s timeout, and an unreachable one is retried', async () => {
  const { db, put, received } = await startWebhook(() => undefined, { timeout: '1s' })
  await put()
  await eventually(async () => expect(docstateIn(await db.get('o'))?.failure).toMatchObject({ code: 'timeout' }))
  await eventually(() => expect(received.length).toBeGreaterThan(1))
  const away = await startWebhook(invoiced, {}, { url: 'http://127.0.0.1:1/away' })
  await away.put()
  await eventually(async () =>
    expect(docstateIn(await away.db.get('o'))?.failure).toMatchObject({ code: 'ECONNREFUSED' }),
  )
})

test('schedules and deletions are sent like other documents', async () => {
  const { url, received } = await startReceiver((_one, response) => json(response, 200, { state: 'ignored' }))
  const client = createWebhookClient({ keys: [keyFrom(SECRET)!], version: '1', now: Date.now })
  onTestFinished(() => client.close())
  const control = createControl<Machines>({})
  control.schedule('nightly', { cron: '0 6 * * *' }, webhook(`${url}/nightly`))
  control.deleted('photo', webhook(`${url}/photo-deleted`))
  const { schedules, deletions } = bindWebhooks(joinHandlers([control]), client)
  const ctx = { key: 'k', attempt: 1, database: 'control', signal: new AbortController().signal } as never
  const run = { _id: 'r', _rev: '1-a', schedule: 'nightly', due_at: '2026-11-27T06:00:00Z' } as const
  expect(await schedules[0]!.handler(run, ctx)).toBeUndefined()
  expect(await deletions[0]!.handler({ _id: 'p', _rev: '2-b', type: 'photo', _deleted: true }, ctx)).toBeUndefined()
  expect(received.map(({ path, body }) => [path, (JSON.parse(body) as { _id: string })._id])).toEqual([
    ['/nightly', 'r'],
    ['/photo-deleted', 'p'],
  ])
})
