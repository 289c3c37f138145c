import { Hono } from 'hono'
import { expect, test } from 'vitest'
import { openBrowser } from '../../support/browser.ts'
import { couchUrl, needs } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { start } from './db-updates-rig.ts'

const { username, password } = new URL(couchUrl())

test('a browser’s EventSource loses no row when it reconnects, also before its first row', async () => {
  needs('browser')
  const page = new Hono()
  page.get('/page', (c) => {
    c.header('Content-Security-Policy', "default-src 'self' 'unsafe-inline'")
    return c.html(`<script>
      seen = []
      opened = 0
      beats = 0
      source = new EventSource('/_db_updates?feed=eventsource&since=now&limit=1&timeout=500')
      source.onopen = () => opened++
      source.onmessage = ({ data, lastEventId }) => {
        const { type, db_name, seq } = JSON.parse(data)
        seen.push(type + ':' + db_name + (lastEventId === JSON.stringify(seq) ? '' : ' with another event id'))
      }
      other = new EventSource('/_db_updates?feed=eventsource&since=now&heartbeat=50')
      other.addEventListener('heartbeat', () => beats++)
    </script>`)
  })
  const { db, url } = await start({ existing: ['updated:old'], routes: [page] })
  const httpCredentials = { username: decodeURIComponent(username), password: decodeURIComponent(password) }
  const tab = await (await (await openBrowser()).newContext({ httpCredentials })).newPage()
  await tab.goto(url.replace('/_db_updates', '/page'))
  await eventually(async () => expect(await tab.evaluate('beats')).toBeGreaterThan(2))
  await eventually(async () =>
    expect(await tab.evaluate('opened + (source.readyState === 0 ? " ended" : "")')).toBe('1 ended'),
  )
  await db.report('updated:a')
  await eventually(async () => expect(await tab.evaluate('seen')).toEqual(['updated:a']))
  await db.report('updated:b', 'updated:c')
  await eventually(async () =>
    expect(await tab.evaluate('seen.sort()')).toEqual(['updated:a', 'updated:b', 'updated:c']),
  )
})
