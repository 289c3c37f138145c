/**
 * Random histories: databases are created, written, deleted and created again, while the sidecar is stopped, killed and
 * cut off, and the server is killed. Afterwards the events must match the databases. HISTORY_SEED repeats a run, as far
 * as the timing of other processes allows.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { seeded } from '../../chaos/seeded.ts'
import { createTestCouch, needs, startPrivateCouch, uniqueName, type PrivateCouch } from '../../support/couchdb.ts'
import { findCouchBinary } from '../../support/couchdb-binary.ts'
import { eventually } from '../../support/eventually.ts'
import {
  cut,
  cutAfterUpstream,
  delay,
  refuse,
  startFaultyProxy,
  type Fault,
  type SeenRequest,
} from '../../support/faulty-proxy.ts'
import { amount } from '../../support/thorough.ts'
import { notFound, settings, startGlobalChanges } from './rig.ts'
import { DrawnDatabase, readRows } from './drawn-database.ts'

const DATABASES = 4
const STEPS = 16
/** The server's feed shows a change within 1.5 s. */
const REST_MS = 2000
const first = Number(process.env.HISTORY_SEED ?? Math.floor(Math.random() * 1e6))
const cases = Array.from({ length: amount(2, 40) }, (_, index) => ({
  seed: first + index,
  mayHaveFeed: index % 2 === 0,
}))

let server: PrivateCouch | undefined
beforeAll(async () => {
  if (findCouchBinary()) server = await startPrivateCouch()
})
afterAll(() => server?.stop())

/** A sidecar that the test starts, stops and kills. Each of its requests may get a random fault. */
function createSidecar(name: string, mayHaveFeed: boolean) {
  const { url } = server!
  const start = async () => {
    const proxy = await startFaultyProxy(url)
    return { proxy, ...startGlobalChanges({ url, by: proxy.url, name, mayHaveFeed }) }
  }
  let running: Awaited<ReturnType<typeof start>> | undefined
  let sweeps = 0
  return {
    start: async () => void (running ??= await start()),
    async stop() {
      await running?.stop()
      running = undefined
    },
    async kill() {
      await running?.kill(running.proxy)
      running = undefined
    },
    plan: (choose: (request: SeenRequest) => Fault | undefined) => running?.proxy.plan(choose),
    sweep: () => running?.changes.change({ ...settings, sweep_interval: settings.sweep_interval + ++sweeps }),
  }
}

/** Each call applies one random step to a database, and sometimes one to the sidecar or the server. */
function createHistory(seed: number, databases: readonly DrawnDatabase[], sidecar: ReturnType<typeof createSidecar>) {
  const random = seeded(seed)
  const ofFaults = seeded(-seed) // one per request
  const draw = <T>(list: readonly T[], by = random) => list[Math.floor(by() * list.length)]!
  const faultOf = (request: SeenRequest) => {
    const lie = request.path === '/_dbs_info' ? [notFound] : []
    return draw([undefined, undefined, undefined, refuse(500), cut, cutAfterUpstream, delay(300), ...lie], ofFaults)
  }
  const mishaps = {
    start: () => sidecar.start(),
    stop: () => sidecar.stop(),
    kill: () => sidecar.kill(),
    async 'kill and start'() {
      await sidecar.kill()
      await sidecar.start()
    },
    sweep: () => Promise.resolve(sidecar.sweep()),
    async faults() {
      sidecar.plan(faultOf)
      await sleep(random() * 1000)
      sidecar.plan(() => undefined)
    },
    async 'kill of the server'() {
      if (random() < 0.3) await server!.restart()
    },
  }
  async function change(drawn: DrawnDatabase): Promise<void> {
    if (!drawn.isThere) return drawn.create()
    if (random() < 0.5) return drawn.write()
    await drawn.delete()
    if (random() < 0.5) await drawn.create()
  }

  return async () => {
    await change(draw(databases))
    if (random() < 0.4) await sleep(random() * 700)
    if (random() < 0.5) await mishaps[draw(Object.keys(mishaps) as (keyof typeof mishaps)[])]()
  }
}

test.each(cases)(
  'the events are correct after any history (seed $seed, with the feed of the server: $mayHaveFeed)',
  async ({ seed, mayHaveFeed }) => {
    needs('private server')
    const couch = createTestCouch({ url: server!.url })
    await couch.db('_global_changes').create()
    const events = couch.db(uniqueName('global-changes'))
    await couch.request({ method: 'PUT', db: events.name, query: { q: 1 } }) // its rows are ordered
    const databases = Array.from({ length: DATABASES }, () => new DrawnDatabase(couch.db(uniqueName('orders')), events))
    const sidecar = createSidecar(events.name, mayHaveFeed)
    const happen = createHistory(seed, databases, sidecar)
    await sidecar.start()
    for (let step = 0; step < STEPS; step++) await happen()
    await sidecar.start()

    const read = async () => {
      const rows = await readRows(events)
      return {
        rows: databases.map(({ name }) => rows.get(name)),
        faults: databases.flatMap((drawn) => drawn.faults(rows)),
      }
    }
    const rest = async () => {
      const { rows } = await read()
      sidecar.sweep()
      await sleep(REST_MS)
      expect(await read()).toEqual({ rows, faults: [] })
    }
    await eventually(rest)
  },
)
