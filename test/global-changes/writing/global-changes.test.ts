import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../sidecar/core/clock.ts'
import {
  createGlobalChanges,
  type GlobalChangesOptions,
} from '../../../sidecar/global-changes/writing/global-changes.ts'
import { allBuckets } from '../../../sidecar/global-changes/writing/share.ts'
import { createTestCouch, deleteDb, freshDb, uniqueName } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'

const settings = { update_db: true, max_event_delay: 25, max_write_delay: 25, sweep_interval: 60_000 }

async function start(options: Partial<GlobalChangesOptions> = {}) {
  const couch = createTestCouch()
  const events = await freshDb('global-changes')
  const stopping = new AbortController()
  const changes = createGlobalChanges({
    ...{ couch, name: events.name, share: allBuckets, settings, clock: systemClock, random: Math.random },
    log: pino({ level: process.env.SIDECAR_LOG_LEVEL ?? 'silent' }),
    ...options,
  })
  const running = changes.run(stopping.signal)
  const stop = async () => {
    stopping.abort()
    await running
  }
  onTestFinished(stop)
  const eventsOf = async (name: string) =>
    (await events.getMany(['created', 'updated', 'deleted'].map((event) => `${event}:${name}`))).map(
      ({ _id, _rev }) => `${_id.split(':')[0]!} ${parseInt(_rev)}`,
    )
  return { couch, events, changes, stop, eventsOf }
}

const seen = <T>(read: () => Promise<T>, wanted: T) =>
  eventually(async () => expect(await read()).toEqual(wanted), { within: 20_000 })

test('a database is made, changed, and deleted', async () => {
  const { events, eventsOf, couch } = await start()
  await eventually(async () => expect(await events.find('created:_users')).toBeDefined(), { within: 20_000 })
  const name = uniqueName('orders')
  const db = couch.db(name)
  await db.create()
  await seen(() => eventsOf(name), ['created 1'])
  await db.put({ _id: 'a' })
  await seen(() => eventsOf(name), ['created 1', 'updated 1'])
  await deleteDb(name)
  await seen(() => eventsOf(name), ['created 1', 'updated 1', 'deleted 1'])
})
