import pino from 'pino'
import { onTestFinished } from 'vitest'
import type { Clock } from '../../sidecar/core/clock.ts'
import { systemClock } from '../../sidecar/core/clock.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import { createEvents } from '../../sidecar/events/channels.ts'
import { createLiveSettings } from '../../sidecar/live-settings/live-settings.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { startFaultyProxy, type SeenRequest } from '../support/faulty-proxy.ts'

export const _id = 'config:global_changes'
export const defaults = { update_db: true, max_event_delay: 25, max_write_delay: 25, sweep_interval: 60_000 }

export interface Line {
  readonly level: number
  readonly msg: string
  readonly [field: string]: unknown
}

export const INFO = 30
export const WARN = 40
export const ERROR = 50

/** Live settings that are not yet running. They stop at the end of the test. */
export function createLive(database: Database, clock: Clock = systemClock) {
  const lines: Line[] = []
  const log = pino({ level: 'debug', base: null }, { write: (line) => void lines.push(JSON.parse(line) as Line) })
  const events = createEvents({ log })
  const stopping = new AbortController()
  const live = createLiveSettings({ database, events, clock, random: () => 0.5, log })
  let running: Promise<void> | undefined
  const stop = async () => {
    stopping.abort(new Error('the test is over'))
    await running
  }
  onTestFinished(stop)
  return {
    live,
    events,
    signal: stopping.signal,
    said: (level: number) => lines.filter((line) => line.level === level),
    /** Resolves after the first read. */
    start: async () => {
      running = live.run(stopping.signal)
      await live.whenKnown(stopping.signal)
    },
    stop,
    now: () => live.of('global_changes'),
  }
}

/** Running live settings of a database without a guard, which accepts any document. */
export async function startLive() {
  const db = await freshDb('live')
  const rig = createLive(db)
  await rig.start()
  return { db, ...rig }
}

/** Live settings that reach CouchDB through a faulty proxy. The `db` of the result does not use the proxy. */
export async function createLiveBehindProxy(clock?: Clock) {
  const db = await freshDb('live')
  const proxy = await startFaultyProxy()
  const rig = createLive(createTestCouch({ url: proxy.url }).db(db.name), clock)
  return { db, proxy, looks: () => proxy.requests.filter(isLook).length, ...rig }
}

export const isFeed = ({ path }: SeenRequest): boolean => path.endsWith('/_changes')
export const isLook = ({ path }: SeenRequest): boolean => /\/(_bulk_get|_all_docs)$/.test(path)

/** Writes the settings over any existing ones; undefined deletes them. */
export async function set(db: Database, fields: Readonly<Record<string, unknown>> | undefined): Promise<void> {
  const _rev = (await db.find(_id))?._rev
  await db.put({ _id, ...(_rev !== undefined && { _rev }), ...(fields ?? { _deleted: true }) })
}
