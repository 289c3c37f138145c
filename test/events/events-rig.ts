import type { Hono, MiddlewareHandler } from 'hono'
import { pino } from 'pino'
import { onTestFinished } from 'vitest'
import { systemClock } from '../../sidecar/core/clock.ts'
import { createEvents } from '../../sidecar/events/channels.ts'
import { createHttp } from '../../sidecar/http/app.ts'
import { eventFeeds, type EventsOptions } from '../../sidecar/events/events-feature.ts'
import { serveApp } from '../http/serve-app.ts'
import { createRecheck } from '../../sidecar/http/recheck.ts'

const log = pino({ level: 'silent' })
const allowAll: MiddlewareHandler = (_, next) => next()

/** Event channels, served until the end of the test. */
export async function startEventFeeds(options: Partial<EventsOptions> = {}, ...others: Hono[]) {
  const events = createEvents({ log })
  const stopping = new AbortController()
  const counts = { open: 0, dropped: 0 }
  const route = eventFeeds({
    ...{
      events,
      adminOnly: allowAll,
      recheck: createRecheck({ clock: systemClock, everyMs: 60_000 }),
      clock: systemClock,
      counts,
      signal: stopping.signal,
    },
    ...options,
  })
  const app = createHttp({ routes: [route, ...others], log })
  const http = await serveApp(app)
  onTestFinished(() => stopping.abort())
  return { events, counts, url: http.url, port: http.port, stop: () => stopping.abort() }
}
