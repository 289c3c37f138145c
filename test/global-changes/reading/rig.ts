import { pino } from 'pino'
import { expect, onTestFinished } from 'vitest'
import { systemClock, type Clock } from '../../../sidecar/core/clock.ts'
import type { Couch } from '../../../sidecar/couch/client.ts'
import { SEQ_ZERO } from '../../../sidecar/couch/documents.ts'
import { createEvents } from '../../../sidecar/events/channels.ts'
import { createDbUpdates, type OpenOptions } from '../../../sidecar/global-changes/reading/db-updates.ts'
import type { Update } from '../../../sidecar/global-changes/reading/update.ts'
import { createTestCouch } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { startFaultyProxy, type SeenRequest } from '../../support/faulty-proxy.ts'
import { freshEventDatabase } from './event-database.ts'
import { hold } from './faults.ts'

const log = pino({ level: process.env.SIDECAR_LOG_LEVEL ?? 'silent' })

/** The feed of a database. `run` starts the feed, and the end of the test stops it. */
export function createFeed(name: string, couch: Couch = createTestCouch(), clock: Clock = systemClock) {
  const events = createEvents({ log })
  const feed = createDbUpdates({ couch, name, events, clock, random: () => 0.1, log })
  const stopping = new AbortController()
  const { signal } = stopping
  const run = () => {
    const running = feed.run(signal)
    onTestFinished(async () => {
      stopping.abort(new Error('the test is over'))
      await running
    })
  }

  /** A reader with the rights of an admin by default. */
  function open(options: Partial<OpenOptions> = {}) {
    const reading = feed.open({ viewer: { kind: 'admin' }, since: SEQ_ZERO, descending: false, ...options })
    onTestFinished(() => reading.close())
    return reading
  }

  /** A reader that takes all rows at once. */
  function collect(options: Partial<OpenOptions> = {}) {
    const reading = open(options)
    const updates: Update[] = []
    const ending = new AbortController()
    const reader = { reading, updates, ids: () => updates.map(({ id }) => id).sort(), leave: () => ending.abort() }
    const run = async () => {
      for (;;) updates.push(...(await reading.next(Infinity, ending.signal)))
    }
    void run().catch(() => reading.close())
    onTestFinished(() => ending.abort())
    return reader
  }

  return { feed, events, run, open, collect, signal }
}

export const isLive = ({ path, query }: SeenRequest) => path.endsWith('/_changes') && query.get('feed') === 'continuous'
export const isPage = ({ path, query }: SeenRequest) => path.endsWith('/_changes') && !query.has('feed')

/** The feed of a new database, behind a proxy. */
export async function createProxiedFeed(clock?: Clock) {
  const db = await freshEventDatabase()
  const proxy = await startFaultyProxy()
  const rig = createFeed(db.name, createTestCouch({ url: proxy.url }), clock)

  /** Starts the feed, and waits until it is connected. */
  async function connect() {
    rig.run()
    await eventually(() => expect(proxy.requests.filter(isLive)).toHaveLength(1))
  }

  /** A reader that waits for its page, which CouchDB has answered. */
  async function collectDuringPage() {
    const held = hold('answer')
    proxy.next(held.fault, isPage)
    const reader = rig.collect()
    await eventually(() => expect(held.isThere()).toBe(true))
    return { reader, release: held.release }
  }

  return { db, proxy, ...rig, connect, collectDuringPage }
}
