import { Hono } from 'hono'
import { expect, test } from 'vitest'
import { openBrowser } from '../support/browser.ts'
import { needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startEventFeeds } from './events-rig.ts'

test('a browser’s EventSource reads a feed, and reconnects by itself after a cut', async () => {
  needs('browser')
  const page = new Hono()
  page.get('/page', (c) => {
    c.header('Content-Security-Policy', "default-src 'self' 'unsafe-inline'")
    return c.html(`<script>
      seen = []
      source = new EventSource('/_events/a')
      source.onopen = () => seen.push('open')
      source.onmessage = ({ data }) => data === '""' || seen.push(data)
      source.addEventListener('missed', ({ data }) => seen.push(data))
    </script>`)
  })
  const { events, url } = await startEventFeeds({ limit: 1000 }, page)
  const tab = await (await openBrowser()).newPage()
  await tab.goto(`${url}/page`)
  const seen = () => tab.evaluate('seen')
  await eventually(() => expect(events.channel('a')).toBeDefined())
  events.channel('a')?.publish({ n: 1 })
  await eventually(async () => expect(await seen()).toEqual(['open', '{"n":1}']))
  while (events.channel('a')) events.channel('a')?.publish('') // too much at once: the server cuts the reader off
  await eventually(() => expect(events.channel('a')).toBeDefined())
  await eventually(async () => expect(await seen()).toEqual(['open', '{"n":1}', 'open', '{"missed":null}']))
  events.channel('a')?.publish({ n: 2 })
  await eventually(async () => expect(((await seen()) as string[]).at(-1)).toBe('{"n":2}'))
})
