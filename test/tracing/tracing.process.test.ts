/** Traces as docs/tracing.md sets them up: the OpenTelemetry SDK sends them to a collector. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json, text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { root } from '../acceptance/build.ts'
import { startProcessWith, writeModule } from '../acceptance/own-handlers.ts'
import { eventually } from '../support/eventually.ts'
import { startTestSmtp } from '../support/smtp.ts'

interface Span {
  readonly name: string
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly attributes: readonly { readonly key: string; readonly value: Record<string, unknown> }[]
  readonly status: { readonly code?: number; readonly message?: string }
}
interface Sent {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: readonly Span[] }[] }[]
}

/** A server of the test; resolves with its address. */
async function listen(server: ReturnType<typeof createServer>): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((closed) => server.close(closed))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function startCollector() {
  const spans: Span[] = []
  const url = await listen(
    createServer((request, response) => {
      void json(request).then((sent) => {
        spans.push(...(sent as Sent).resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((one) => one.spans)))
        response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
      })
    }),
  )
  return { url, spans }
}

async function startReceiver() {
  const headers = new Map<string, IncomingHttpHeaders>()
  const url = await listen(
    createServer((request, response) => {
      void text(request).then((body) => {
        headers.set(request.url!, request.headers)
        if (request.url === '/fail') response.writeHead(422).end('no')
        else response.end(request.url!.startsWith('/webhook') ? body.replace('"charged"', '"shipped"') : '{}')
      })
    }),
  )
  return { url, headers }
}

/** The setup file from the page. */
async function writeSetup(): Promise<string> {
  const page = readFileSync(join(root, 'docs/tracing.md'), 'utf8')
  const [, source = ''] = /```js\n(\/\/ tracing\.mjs\n[^]*?)```/.exec(page) ?? []
  const folder = await mkdtemp(join(tmpdir(), 'tracing-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  await writeFile(join(folder, 'tracing.mjs'), source)
  return join(folder, 'tracing.mjs')
}

const attributesOf = ({ attributes }: Span) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

test('a document’s trace runs from its change to its save, and continues in the services that its handlers call', async () => {
  const [collector, receiver, smtp] = [await startCollector(), await startReceiver(), await startTestSmtp()]
  const module = await writeModule(`
    import { defineHandlers, webhook } from 'couchdb-sidecar'
    export default defineHandlers((control) => {
      control.unsafe('order', 'paid', async (order, ctx) => {
        await fetch('${receiver.url}/called', { method: 'POST', body: '{}' })
        await ctx.mail.send({ to: 'ann@example.com', subject: 'yours', text: 'x' })
        return { ...order, state: 'charged' }
      })
      control.safe('order', 'charged', webhook('${receiver.url}/webhook?token=secret'))
      control.safe('order', 'broken', async () => { throw Object.assign(new Error('no'), { code: 'EBAD' }) }, { attempts: 1 })
      control.safe('order', 'refused', webhook('${receiver.url}/fail'))
    })`)
  const { orders, sidecar } = await startProcessWith(module, {
    NODE_OPTIONS: `--import ${await writeSetup()}`,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    SMTP_URL: smtp.url,
    SIDECAR_WEBHOOK_HOSTS: new URL(receiver.url).host,
    SIDECAR_WEBHOOK_SECRETS: `whsec_${Buffer.alloc(24, 'k').toString('base64')}`,
  })
  for (const state of ['paid', 'broken', 'refused']) await orders.put({ _id: state, type: 'order', state })
  const reaches = (id: string, state: string) =>
    eventually(async () => expect((await orders.get(id)).state).toBe(state))
  await reaches('paid', 'shipped')
  await reaches('broken', 'error')
  await reaches('refused', 'error')
  expect(await sidecar.stop()).toBe(0)

  const { spans } = collector
  const named = (name: string) => spans.filter((span) => span.name === name)
  const [whole] = named('order/paid')
  expect(whole).toMatchObject({ kind: 5, status: {} })
  expect(whole!.parentSpanId ?? '').toBe('')
  expect(attributesOf(whole!)).toMatchObject({
    'db.system.name': 'couchdb',
    'db.namespace': orders.name,
    'couchdb_sidecar.document.id': 'paid',
    'couchdb_sidecar.attempt': 1,
    'couchdb_sidecar.end': 'settled',
    'couchdb_sidecar.document.next_state': 'charged',
  })
  for (const part of ['claim', 'handle', 'save']) {
    expect(named(`${part} order/paid`)).toMatchObject([{ parentSpanId: whole!.spanId, traceId: whole!.traceId }])
  }
  const [handle] = named('handle order/paid')
  expect(attributesOf(handle!)).toEqual({ 'couchdb_sidecar.outcome': 'next' })
  expect(named('send mail')).toMatchObject([{ parentSpanId: handle!.spanId }])
  const [called] = spans.filter((span) => String(attributesOf(span)['url.full']).endsWith('/called'))
  expect(called).toMatchObject({ parentSpanId: handle!.spanId })
  expect(receiver.headers.get('/called')!.traceparent).toContain(`${called!.traceId}-${called!.spanId}`)

  const [charged] = named('handle order/charged')
  const posts = spans.filter((span) => span.traceId === charged!.traceId && span.name === 'POST')
  const hook = posts.find((span) => span.parentSpanId === charged!.spanId)!
  expect(attributesOf(hook)).toMatchObject({
    'url.full': `${receiver.url}/webhook`,
    'http.response.status_code': 200,
  })
  expect(receiver.headers.get('/webhook?token=secret')!.traceparent).toContain(charged!.traceId)
  expect(named('claim order/charged')).toEqual([])

  expect(named('handle order/broken')).toMatchObject([{ status: { code: 2, message: 'EBAD: no' } }])
  expect(named('handle order/refused')).toMatchObject([{ status: { code: 2 } }])
  expect(spans.filter((span) => String(attributesOf(span)['url.full']).includes('_bulk_docs'))).toEqual([])
})
