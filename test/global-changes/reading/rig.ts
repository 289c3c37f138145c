import { pino } from 'pino'
import { onTestFinished } from 'vitest'
import { systemClock, type Clock } from '../../../sidecar/core/clock.ts'
import type { Couch } from '../../../sidecar/couch/client.ts'
import { SEQ_ZERO } from '../../../sidecar/couch/documents.ts'
import { createEvents } from '../../../sidecar/events/channels.ts'
import { createDbUpdates, type OpenOptions } from '../../../sidecar/global-changes/reading/db-updates.ts'
import type { Update } from '../../../sidecar/global-changes/reading/update.ts'
import { createTestCouch } from '../../support/couchdb.ts'

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
