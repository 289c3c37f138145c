import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { MiddlewareHandler } from 'hono'
import { expect, onTestFinished, test } from 'vitest'
import { HttpError } from '../../sidecar/http/http-errors.ts'
import { eventually } from '../support/eventually.ts'
import { startEventFeeds } from './events-rig.ts'

/** A reader and its input so far. */
async function read(url: string, headers: Record<string, string> = {}) {
  const leaving = new AbortController()
  onTestFinished(() => leaving.abort())
  const response = await fetch(url, { headers, signal: leaving.signal })
  const reader = { response, text: '', ended: false, leave: () => leaving.abort() }
  void (async () => {
    const decoder = new TextDecoder()
    for await (const chunk of response.body as AsyncIterable<Uint8Array>)
      reader.text += decoder.decode(chunk, { stream: true })
    reader.ended = true
  })().catch(() => undefined)
  return reader
}

const lastId = (text: string) => [...text.matchAll(/^id: (.*)$/gm)].at(-1)![1]!

test('a reader gets the messages of its channel as events with ids, and none of other channels', async () => {
  const { events, url } = await startEventFeeds()
  const reader = await read(`${url}/_events/mail:sent`)
  expect(reader.response.headers.get('content-type')).toBe('text/event-stream')
  events.channel('mail:failed')?.publish({ message_id: 'a', to: 'b', code: 'c', reason: 'd' })
  events.channel('mail:sent')?.publish({ message_id: 'm1', to: 'you@example.com' })
  events.channel('mail:sent')?.publish({ message_id: 'm2', to: 'you@example.com' })
  const second = 'data: {"message_id":"m2","to":"you@example.com"}\n\n'
  await eventually(() => expect(reader.text).toContain(second))
  expect(reader.text.match(/^data/gm)).toHaveLength(2)
  expect(reader.text).toMatch(/^: .*\n\nid: (.*)\/1\ndata: .*\n\nid: \1\/2\n/)
})

test('a channel can have any name', async () => {
  const { events, url } = await startEventFeeds()
  const reader = await read(`${url}/_events/${encodeURIComponent('a/b: ü')}`)
  events.channel('a/b: ü')?.publish({ n: 1 })
  await eventually(() => expect(reader.text).toContain('data: {"n":1}\n\n'))
})

test('all readers of a channel share one subscriber, which ends with the last reader', async () => {
  const { events, counts, url } = await startEventFeeds()
  const readers = await Promise.all([1, 2, 3].map(() => read(`${url}/_events/a`)))
  events.channel('a')?.publish('x')
  for (const reader of readers) await eventually(() => expect(reader.text).toContain('data: "x"'))
  expect(new Set(readers.map(({ text }) => lastId(text))).size).toBe(1)
  expect(counts).toEqual({ open: 3, dropped: 0 })
  readers[0]!.leave()
  readers[1]!.leave()
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(events.channel('a')).toBeDefined()
  readers[2]!.leave()
  await eventually(() => expect(events.channel('a')).toBeUndefined())
  expect(counts, 'a reader that leaves does not count as dropped').toEqual({ open: 0, dropped: 0 })
})

test('an idle feed sends heartbeats', async () => {
  const { url } = await startEventFeeds({ heartbeatMs: 50 })
  const reader = await read(`${url}/_events/a`)
  await eventually(() => expect(reader.text.match(/^:$/gm)?.length).toBeGreaterThan(2))
})

test('a slow reader gets a notice and is cut off, and the others miss no event', async () => {
  const { events, counts, url, port } = await startEventFeeds({ limit: 512 * 1024, patienceMs: 60_000 })
  const slow = connect(port, '127.0.0.1')
  onTestFinished(() => void slow.destroy())
  await once(slow, 'connect')
  slow.pause().write('GET /_events/a HTTP/1.1\r\nHost: x\r\n\r\n')
  await eventually(() => expect(events.channel('a')).toBeDefined())
  const quick = await read(`${url}/_events/a`)
  const event = { fill: 'x'.repeat(256 * 1024) }
  let count = 0
  let received = ''
  slow.setEncoding('utf8').on('data', (text: string) => void (received += text))
  slow.pause()
  while (count < 120) {
    // 30 MB: more than the connection buffers
    events.channel('a')?.publish({ ...event, count: ++count })
    await eventually(() => expect(quick.text).toContain(`"count":${count}}`))
    quick.text = ''
  }
  slow.resume()
  await eventually(() => expect(received).toMatch(/event: error\ndata: \{"error":"slow_reader".*\}\n\n/))
  await once(slow, 'close').catch(() => undefined)
  expect(counts).toEqual({ open: 1, dropped: 1 })
  expect(received).not.toContain(`"count":${count}}`)
  expect(quick.ended).toBe(false)
})

test('a reader that reads nothing is disconnected', async () => {
  const { events, url, port } = await startEventFeeds({ limit: 64 * 1024, patienceMs: 300 })
  const stuck = connect(port, '127.0.0.1')
  onTestFinished(() => void stuck.destroy())
  await once(stuck, 'connect')
  stuck.pause().write('GET /_events/a HTTP/1.1\r\nHost: x\r\n\r\n')
  await eventually(() => expect(events.channel('a')).toBeDefined())
  while (events.channel('a')) {
    events.channel('a')?.publish('x'.repeat(32 * 1024))
    await sleep(0) // the connection buffers some megabytes
  }
  let broken = false
  stuck.on('error', () => (broken = true)) // a paused socket notices the cut when it writes
  await eventually(() => {
    stuck.write('\r\n') // a line break is valid before a next request
    expect(broken).toBe(true)
  })
  expect((await fetch(`${url}/_events/a`, { method: 'HEAD' })).status).toBe(200)
})

test('an event that exceeds the buffer limit does not make a reader slow', async () => {
  const { events, url } = await startEventFeeds({ limit: 1000 })
  const reader = await read(`${url}/_events/a`)
  events.channel('a')?.publish('x'.repeat(5000))
  await eventually(() => expect(reader.text).toContain('xxx"\n\n'))
  expect(reader.ended).toBe(false)
})

test('a reader that reconnects learns how many events it missed, if that is known', async () => {
  const { events, url } = await startEventFeeds()
  const stays = await read(`${url}/_events/a`)
  const leaves = await read(`${url}/_events/a`)
  events.channel('a')?.publish(1)
  await eventually(() => expect(leaves.text).toContain('data: 1'))
  const id = lastId(leaves.text)
  leaves.leave()
  const again = await read(`${url}/_events/a`, { 'Last-Event-ID': id })
  await eventually(() => expect(again.text).toContain(':'))
  expect(again.text, 'no event was missed').not.toContain('missed')
  again.leave()
  events.channel('a')?.publish(2)
  events.channel('a')?.publish(3)
  await eventually(() => expect(stays.text).toContain('data: 3'))
  const late = await read(`${url}/_events/a`, { 'Last-Event-ID': id })
  await eventually(() => expect(late.text).toContain('event: missed\ndata: {"missed":2}\n\n'))
})

test.each(['5f0c/7', 'nonsense', ''])(
  'a reader that reconnects after “%s” learns that the number of missed events is unknown',
  async (id) => {
    const { url } = await startEventFeeds()
    const reader = await read(`${url}/_events/a`, { 'Last-Event-ID': id })
    await eventually(() => expect(reader.text).toContain('event: missed\ndata: {"missed":null}\n\n'))
  },
)

test('a stop ends every feed', async () => {
  const { events, url, stop } = await startEventFeeds()
  const readers = await Promise.all(['a', 'b'].map((channel) => read(`${url}/_events/${channel}`)))
  stop()
  for (const reader of readers) await eventually(() => expect(reader.ended).toBe(true))
  expect(events.channel('a')).toBeUndefined()
})

test('HEAD does not subscribe; other methods than GET, and users who are not admins, are refused', async () => {
  const { events, url } = await startEventFeeds()
  expect((await fetch(`${url}/_events/a`, { method: 'HEAD' })).headers.get('content-type')).toBe('text/event-stream')
  expect(events.channel('a')).toBeUndefined()
  expect((await fetch(`${url}/_events/a`, { method: 'POST' })).status).toBe(405)
  const adminOnly: MiddlewareHandler = () => {
    throw new HttpError(401, 'unauthorized', 'You are not a server admin.')
  }
  const closed = await startEventFeeds({ adminOnly })
  expect((await fetch(`${closed.url}/_events/a`)).status).toBe(401)
  expect(closed.events.channel('a')).toBeUndefined()
})
