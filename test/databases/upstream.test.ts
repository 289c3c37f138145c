/** Visited databases with the real source of events: each change is written, read and visited. */
import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../sidecar/core/clock.ts'
import { createEvents, type Events } from '../../sidecar/events/channels.ts'
import { createDbUpdates } from '../../sidecar/global-changes/reading/db-updates.ts'
import { startGlobalChanges, startServerWithFeed } from '../global-changes/writing/rig.ts'
import { couchUrl, createTestCouch, needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { createPrefix, make, order, startVisits } from './rig.ts'

/** Prevents a second listing of all databases during the test. */
const HARDLY = [600_000, 600_000] as const

/** Publishes the events of all databases of this server, as a sidecar does. */
async function startEvents(url: string): Promise<Events> {
  const log = pino({ level: process.env.SIDECAR_LOG_LEVEL ?? 'silent' })
  const writing = startGlobalChanges({ url })
  await writing.swept()
  const events = createEvents({ log })
  const [couch, stopping] = [createTestCouch({ url }), new AbortController()]
  const feed = createDbUpdates({ couch, name: writing.name, events, clock: systemClock, random: Math.random, log })
  const running = feed.run(stopping.signal)
  onTestFinished(async () => {
    stopping.abort(new Error('the test is over'))
    await running
  })
  return events
}

test.each(['no feed of all databases', 'a feed of all databases'])(
  'with %s, new databases and changed databases are visited at once',
  async (kind) => {
    if (kind.startsWith('a ')) needs('private server')
    const url = kind.startsWith('a ') ? (await startServerWithFeed()).url : couchUrl()
    const prefix = createPrefix()
    const events = await startEvents(url)
    const rig = startVisits(prefix, { url, events, lookAgainMs: HARDLY })
    const atRest = (databases: number) =>
      eventually(() => expect(rig.visited()).toMatchObject({ databases, open: 0, waiting: 0 }))
    await make(rig, `${prefix}-db-known`)
    await atRest(1)

    const [a] = await make(rig, `${prefix}-db-a`)
    await a!.put(order('first'))
    await eventually(() => expect(rig.handled).toEqual(['first']))
    await atRest(2)
    await a!.put(order('second'))
    await eventually(() => expect(rig.handled).toEqual(['first', 'second']))
    await atRest(2)
  },
)
