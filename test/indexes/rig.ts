import pino from 'pino'
import { afterAll, beforeAll, beforeEach, onTestFinished } from 'vitest'
import { liveSettings } from '../../ddocs/lib/live-settings.ts'
import { systemClock } from '../../sidecar/core/clock.ts'
import { createCouch, type Couch } from '../../sidecar/couch/client.ts'
import { readViewIndex } from '../../sidecar/indexes/view-index.ts'
import { createEvents } from '../../sidecar/events/channels.ts'
import { createIndexes, type IndexesOptions } from '../../sidecar/indexes/indexes.ts'
import { rowOf } from '../../sidecar/indexes/rows.ts'
import type { KenSettings } from '../../sidecar/indexes/index-settings.ts'
import { undivided, type NamePartition } from '../../sidecar/workers/name-partition.ts'
import {
  couchUrl,
  createTestCouch,
  needs,
  startPrivateCouch,
  uniqueName,
  type PrivateCouch,
} from '../support/couchdb.ts'
import { findCouchBinary } from '../support/couchdb-binary.ts'
import { answerOf } from '../support/answers.ts'

/** The defaults, except for the disk of the test machine. */
export const settings: KenSettings = {
  ...(Object.fromEntries(
    Object.entries(liveSettings.ken).map(([key, setting]) => [key, setting.default]),
  ) as unknown as KenSettings),
  min_free_disk: 0,
}

interface RigOptions extends Partial<Omit<IndexesOptions, 'couch' | 'settings'>> {
  /** URL of the server. Default: the server of this run. */
  readonly url?: string
  /** URL at which the indexer reaches the server. Default: the same. */
  readonly by?: string
  readonly settings?: Partial<KenSettings>
}

/** Selects the databases of this test: other tests have databases, too. */
export const onlyBeginningWith = (prefix: string): NamePartition => ({
  ...undivided,
  isOurs: (name) => name.startsWith(prefix),
})

/** Runs the indexer until the end of the test. */
export function startIndexes({ url = couchUrl(), by = url, settings: own = {}, ...options }: RigOptions = {}) {
  const log = pino({ level: process.env.SIDECAR_LOG_LEVEL ?? 'silent' })
  const couch = createTestCouch({ url })
  const events = options.events ?? createEvents({ log })
  const stopping = new AbortController()
  const indexes = createIndexes({
    ...{ couch: createTestCouch({ url: by }), partition: undivided, clock: systemClock, random: Math.random, log },
    ...options,
    ...{ events, settings: { ...settings, ...own } },
  })
  const running = indexes.run(stopping.signal)
  const stop = async () => {
    stopping.abort()
    await running
  }
  onTestFinished(stop)

  const rows = (database: string) =>
    [...indexes.entries()].map((entry) => rowOf(entry, Date.now())).filter(({ db_name }) => db_name === database)
  return {
    ...{ couch, events, indexes, stop, rows },
    report: (database: string, what: 'created' | 'updated' | 'deleted' = 'updated') =>
      events.channel(`database:${what}`)?.publish({ database, account: '_admin' }),
    /** For each index of the database, whether it is up to date. */
    fresh: (database: string) =>
      [...indexes.entries()].filter(({ index }) => index.database === database).map(({ isFresh }) => isFresh),
  }
}

/** A server that builds no index itself and soon forgets about endless functions. */
export async function startQuietServer() {
  const server = await startPrivateCouch()
  const couch = createCouch({ url: server.url })
  await configure(couch, 'ken', 'batch_channels', '0')
  await configure(couch, 'ken', 'incremental_channels', '0')
  await configure(couch, 'couchdb', 'os_process_timeout', '1000')
  await couch.close()
  return server
}

/** One server for all tests of a file. The tests are skipped if it cannot run. */
export function useQuietServer() {
  let server: PrivateCouch
  beforeAll(async () => {
    if (findCouchBinary() !== undefined) server = await startQuietServer()
  })
  afterAll(() => server?.stop())
  beforeEach(() => needs('private server'))

  return {
    server: () => server,
    /** An indexer of the databases with one prefix. */
    start: (options: RigOptions = {}) => {
      const prefix = uniqueName('i')
      const rig = startIndexes({ url: server.url, partition: onlyBeginningWith(prefix), ...options })
      return {
        ...rig,
        prefix,
        fill: (count: number, maps: Record<string, string>) => fill(rig.couch, count, maps, prefix),
      }
    },
  }
}

export const configure = (couch: Couch, section: string, key: string, value: string, node = '_local') =>
  couch
    .request({
      ...{
        method: 'PUT',
        path: `_node/${encodeURIComponent(node)}/_config/${section}/${key}`,
        json: JSON.stringify(value),
      },
    })
    .catch(ignoreText)

/** The answer is text, not a document. */
const ignoreText = (thrown: unknown) => {
  if ((thrown as { code?: string }).code !== 'garbled') throw thrown
}

export const map = 'function (doc) { emit(doc._id) }'
/** A map function that takes this long for each document. */
export const slowMap = (ms: number) =>
  `function (doc) { var until = Date.now() + ${ms}; while (Date.now() < until) {} emit(doc._id) }`
export const endlessMap = 'function (doc) { if (doc._id.indexOf("bad") === 0) for (;;) {} emit(doc._id) }'

/** A new database with documents, and a design document for each of these maps. */
export async function fill(
  couch: Couch,
  documents: number,
  maps: Readonly<Record<string, string>>,
  prefix = 'indexed',
) {
  const database = couch.db(uniqueName(prefix))
  await database.create()
  await write(couch, database.name, documents)
  for (const [name, map] of Object.entries(maps)) await putDdoc(couch, database.name, name, { views: { one: { map } } })
  return database
}

export const write = (couch: Couch, database: string, documents: number) =>
  couch.db(database).bulk(Array.from({ length: documents }, () => JSON.stringify({ _id: uniqueName('doc') })))

export async function putDdoc(couch: Couch, database: string, name: string, fields: object) {
  const current = await couch.db(database).find(`_design/${name}`)
  await couch.db(database).put({ ...fields, _id: `_design/${name}`, ...(current && { _rev: current._rev }) })
}

/** The server's state of an index. */
export const pendingIn = async (couch: Couch, database: string, name: string) =>
  (await readViewIndex(couch, database, `_design/${name}`)).pending

/** Sets the value on each node of a cluster. */
export async function configureAll(couch: Couch, section: string, key: string, value: string) {
  const { cluster_nodes } = await answerOf<{ cluster_nodes: string[] }>(couch, { path: '_membership' })
  for (const node of cluster_nodes) await configure(couch, section, key, value, node)
}
