import { Hono, type MiddlewareHandler } from 'hono'
import type { Clock } from '../core/clock.ts'
import type { Feature } from '../feature.ts'
import type { Recheck } from '../http/recheck.ts'
import { counter, defineMetrics, gauge, metricsOf, one } from '../metrics/metric.ts'
import type { Events } from './channels.ts'
import { createChannelFeed, type ChannelFeed, type ReaderCounts } from './channel-feed.ts'
import { methodNotAllowed } from '../http/http-errors.ts'

export interface EventsFeatureOptions {
  readonly events: Events
  readonly adminOnly: MiddlewareHandler
  readonly recheck: Recheck
  readonly clock: Clock
  /** Ends all readers when it aborts. */
  readonly signal: AbortSignal
}

/** Serves `GET /_events/{channel}`. */
export function eventsFeature(options: EventsFeatureOptions): Feature {
  const counts = { open: 0, dropped: 0 }
  return { routes: [eventFeeds({ ...options, counts })], metrics: [metricsOf(eventMetrics, counts)] }
}

const READERS = 'events/channel-feed.ts'

export const eventMetrics = defineMetrics({
  title: 'GET /_events',
  prefix: 'couchdb_sidecar_event_',
  metrics: {
    readers: gauge('readers', 'Open readers of event channels over HTTP.', READERS),
    readers_dropped_total: counter(
      'readers',
      'Readers of event channels that the sidecar disconnected because they were too slow. They lost events.',
      READERS,
    ),
  },
  read: ({ open, dropped }: ReaderCounts) => ({ readers: one(open), readers_dropped_total: one(dropped) }),
})

export interface EventsOptions extends EventsFeatureOptions {
  /** The feeds update these counts. */
  readonly counts: ReaderCounts
  /** Interval of the heartbeats. Default 15 s. */
  readonly heartbeatMs?: number
  /** Maximum unread bytes of a reader. Default 1 MB. */
  readonly limit?: number
  /** How long a slow reader has to read the last message before its connection is cut. Default 5 s. */
  readonly patienceMs?: number
}

const headers = { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' } // keeps nginx from buffering

/** Serves `GET /_events/{channel}` to server admins: the events of a channel, as server-sent events. */
export function eventFeeds(options: EventsOptions): Hono {
  const { events, adminOnly, recheck, clock, counts, signal } = options
  const { heartbeatMs = 15_000, limit = 1024 * 1024, patienceMs = 5000 } = options
  const feeds = new Map<string, ChannelFeed>()
  let beating = false

  function feedOf(channel: string): ChannelFeed {
    const known = feeds.get(channel)
    if (known) return known
    const onEmpty = () => feeds.delete(channel)
    const feed = createChannelFeed({ events, channel, limit, patienceMs, counts, onEmpty })
    feeds.set(channel, feed)
    if (!beating) void beat()
    return feed
  }

  /** Sends heartbeats while readers are connected. */
  async function beat(): Promise<void> {
    beating = true
    while (feeds.size > 0) {
      await clock.sleep(heartbeatMs, signal).catch(() => undefined)
      for (const feed of feeds.values()) {
        if (signal.aborted) feed.close()
        else feed.write(':\n\n')
      }
    }
    beating = false
  }

  const app = new Hono()
  app.get('/_events/:channel{.+}', adminOnly, (c) => {
    if (c.req.method === 'HEAD') return c.body(null, 200, headers)
    const feed = feedOf(c.req.param('channel'))
    const reader = feed.open(() => checking.stop(), c.req.header('Last-Event-ID'))
    const checking = recheck(
      async () => adminOnly(c, () => Promise.resolve()),
      () => reader.close(),
    )
    return c.body(reader.body, 200, headers)
  })
  app.all('/_events/:channel{.+}', methodNotAllowed('GET', 'HEAD'))
  return app
}
