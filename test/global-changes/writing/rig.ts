import { Readable } from 'node:stream'
import pino from 'pino'
import { expect, onTestFinished } from 'vitest'
import { systemClock } from '../../../sidecar/core/clock.ts'
import { isCouchError } from '../../../sidecar/couch/couch-errors.ts'
import { eventId, type DatabaseEvent } from '../../../sidecar/global-changes/event-documents.ts'
import {
  createGlobalChanges,
  type GlobalChangesOptions,
} from '../../../sidecar/global-changes/writing/global-changes.ts'
import { allBuckets } from '../../../sidecar/global-changes/writing/bucket-partition.ts'
import { couchUrl, createTestCouch, deleteDb, startPrivateCouch, uniqueName } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import type { Exchange } from '../../../sidecar/testing/proxy-exchange.ts'
import { pass, startFaultyProxy, type Fault, type FaultyProxy, type SeenRequest } from '../../support/faulty-proxy.ts'

export const settings = { update_db: true, max_event_delay: 25, max_write_delay: 25, sweep_interval: 60_000 }

const EVENTS: readonly DatabaseEvent[] = ['created', 'updated', 'deleted']

interface RigOptions extends Partial<GlobalChangesOptions> {
  /** URL of the watched server, which also stores the events. Default: the server of this run. */
  readonly url?: string
  /** URL at which the writer reaches the server. Default: the same. */
  readonly by?: string
}

/** Runs global changes until the end of the test. */
export function startGlobalChanges({ url = couchUrl(), by = url, ...options }: RigOptions = {}) {
  const couch = createTestCouch({ url })
  const name = options.name ?? uniqueName('global-changes')
  if (url === couchUrl()) onTestFinished(() => deleteDb(name))
  const events = couch.db(name)
  const stopping = new AbortController()
  const changes = createGlobalChanges({
    ...{
      couch: createTestCouch({ url: by }),
      partition: allBuckets,
      settings,
      clock: systemClock,
      random: Math.random,
    },
    log: pino({ level: process.env.SIDECAR_LOG_LEVEL ?? 'silent' }),
    ...options,
    name,
  })
  const running = changes.run(stopping.signal)
  const stop = async () => {
    stopping.abort()
    await running
  }
  /** Stops it like a killed process: none of its later requests reach the server. */
  const kill = async (proxy: FaultyProxy) => {
    await proxy.down()
    await stop()
  }
  onTestFinished(stop)

  /** The number of writes of each event of a database: `created 1`. */
  async function written(database: string): Promise<string[]> {
    try {
      const docs = await events.getMany(EVENTS.map((event) => eventId(event, database)))
      return docs.map(({ _id, _rev }) => `${_id.split(':')[0]!} ${parseInt(_rev)}`)
    } catch (thrown) {
      if (isCouchError(thrown, 'not_found')) return []
      throw thrown
    }
  }
  /** The written events without their numbers. Each may be written more than once. */
  const kinds = async (database: string) => (await written(database)).map((event) => event.split(' ')[0]!)
  const seen = (database: string, wanted: DatabaseEvent[]) =>
    eventually(async () => expect(await kinds(database)).toEqual(wanted))
  return {
    ...{ couch, name, events, changes, stop, kill, written, kinds, seen },
    /** Resolves when the first sweep is complete. */
    swept: () => eventually(async () => expect(await kinds('_users')).toContain('created')),
  }
}

/** A private server with a feed of all databases. */
export async function startServerWithFeed() {
  const server = await startPrivateCouch()
  onTestFinished(() => server.stop())
  await createTestCouch({ url: server.url }).db('_global_changes').create()
  return server
}

/** Holds requests, or their answers, until the test releases them. */
export function createHold() {
  let release = () => {}
  let hold = () => {}
  const released = new Promise<void>((resolve) => (release = resolve))
  /** Resolves when the first request is held. */
  const held = new Promise<void>((resolve) => (hold = resolve))
  const wait = () => {
    hold()
    return released
  }
  const requests: Fault = async (exchange) => {
    await wait()
    await pass(exchange)
  }
  const answers: Fault = async (exchange) => {
    const answer = await exchange.forward()
    hold()
    await released
    await exchange.send(answer)
    exchange.end()
  }
  return { requests, answers, held, hold: wait, release: () => release() }
}

const answer = (exchange: Exchange, body: Readable) =>
  exchange.send({ status: 200, headers: { 'content-type': 'application/json' }, body })

const answerJson = async (exchange: Exchange, value: unknown) => {
  await answer(exchange, Readable.from([Buffer.from(JSON.stringify(value))]))
  exchange.end()
}

/** CouchDB's answer to `_dbs_info` for databases that it cannot read now, for any reason. */
export const notFound: Fault = (exchange) => {
  const { keys } = JSON.parse(exchange.request.body) as { keys: string[] }
  return answerJson(
    exchange,
    keys.map((key) => ({ key, error: 'not_found' })),
  )
}

export interface FeedByHand {
  readonly proxy: FaultyProxy
  /** Adds a row to the feed. */
  readonly report: (event: DatabaseEvent, database: string) => void
  /** As the proxy's `plan`, for every request except the feed. */
  readonly plan: (choose: (request: SeenRequest) => Fault | undefined) => void
  /** Resolves when the feed has a reader. */
  readonly followed: () => Promise<void>
}

/** The info of the database behind the feed. */
const FEED_INFO = { db_name: '_global_changes', doc_count: 0, update_seq: '0-x', instance_start_time: '1' }

/** The server of this run with a feed of all databases whose rows come from the test alone. */
export async function startFeedByHand(): Promise<FeedByHand> {
  const proxy = await startFaultyProxy()
  let rows: Readable | undefined
  let seq = 0
  const feed: Fault = (exchange) => {
    rows = new Readable({ read: () => undefined })
    rows.push('\n')
    return answer(exchange, rows)
  }
  const faults = new Map<string, Fault>([
    ['/_db_updates', feed],
    ['/_global_changes', (exchange) => answerJson(exchange, FEED_INFO)],
  ])
  const plan = (choose: (request: SeenRequest) => Fault | undefined) =>
    proxy.plan((request) => faults.get(request.path) ?? choose(request))
  plan(() => undefined)
  return {
    proxy,
    plan,
    report: (type, db_name) => void rows!.push(`${JSON.stringify({ db_name, type, seq: `${++seq}-x` })}\n`),
    followed: () => eventually(() => expect(rows).toBeDefined()),
  }
}
