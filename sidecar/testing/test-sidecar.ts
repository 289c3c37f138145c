import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { inspect } from 'node:util'
import pino, { type Logger } from 'pino'
import type { Machines } from '../../ddocs/machine.ts'
import { tablesFor } from '../cli/tables-for.ts'
import { loadConfig, type Config } from '../config.ts'
import { withAcquired, type Acquire } from '../core/acquire.ts'
import { parseDuration, type Duration } from '../core/duration.ts'
import { ConfigError } from '../core/errors.ts'
import { createCouch, type Couch } from '../couch/client.ts'
import type { Doc, Documents, StoredDoc } from '../couch/documents.ts'
import { createClassify } from '../docstate/classify.ts'
import { collectHandlers, type HandlersModule, type LoadedHandlers } from '../docstate/handlers.ts'
import { startEmbeddedCouch, startMailCatcher, type CaughtMail, type MailCatcher } from '../embedded/start.ts'
import { createShiftedClock } from './shifted-clock.ts'
import { openWorkerConnection, type WorkerConnection } from './worker-connection.ts'
import { createWatched, poll, startWorker, type Worker } from './worker.ts'

export interface TestSidecarOptions {
  /** URL of a CouchDB, with an admin's credentials. Default `COUCHDB_URL`; if it is not set, the embedded server. */
  readonly couchdbUrl?: string
  /** Initial documents in the main database. Default none. */
  readonly documents?: readonly Doc[]
  /** Other databases and their documents. These databases must not exist yet. Default none. */
  readonly databases?: Readonly<Record<string, readonly Doc[]>>
  /** Settings of the sidecar by name, such as `SIDECAR_LEASE`. The log is silent unless `SIDECAR_LOG_LEVEL` is set. */
  readonly settings?: Readonly<Record<string, string>>
}

export interface WaitOptions {
  /** Timeout in milliseconds of real time; the call then throws. Default 30,000. */
  readonly within?: number
}

/** A sidecar with a test's handlers on its own databases, with tools for time, crashes and lost answers. */
export interface TestSidecar {
  /** Name of the database with the documents. */
  readonly database: string
  /** Name of the control database, which holds the runs of schedules and deletions. */
  readonly control: string
  /** The sent mails, newest last. */
  readonly mails: readonly CaughtMail[]
  /** Writes a document as an admin, and returns it as stored. Throws `CouchError`. */
  put<D extends Doc>(doc: D): Promise<D & StoredDoc>
  /** Returns `undefined` if the document is missing. Throws `CouchError`. */
  find(id: string): Promise<StoredDoc | undefined>
  /** Another database of the server. */
  db(name: string): Documents
  /** Resolves with the document when it is in the state, or when the function accepts it. Throws after the timeout. */
  until(id: string, wanted: string | ((doc: StoredDoc) => boolean), options?: WaitOptions): Promise<StoredDoc>
  /**
   * Resolves when no document needs work now: each is done, in `error`, parked, or due later. Throws after the timeout.
   */
  settled(options?: WaitOptions): Promise<void>
  /**
   * Sets the clock forward, CouchDB's included: retries, timeouts and schedules within that time become due. Up to two
   * more minutes may pass. Running handlers keep their claims. Call `until` or `settled` afterwards.
   */
  advance(time: Duration): Promise<void>
  /**
   * Simulates `kill -9` and a power cut: from now on, nothing from the worker reaches CouchDB. Its handlers continue,
   * but their results are lost.
   */
  crash(): Promise<void>
  /** Starts a worker after a `crash`. Resolves when it is up. */
  restart(): Promise<void>
  /** The worker's next write of this document is stored, but the answer is lost. */
  loseSave(id: string): void
  /** Changes this document just before the worker's next write of it, which becomes a conflict. */
  conflict(id: string, change: (doc: StoredDoc) => Doc): void
  /** Stops the worker, and deletes the databases that the test sidecar created. */
  close(): Promise<void>
}

const WITHIN_MS = 30_000
/** Number of steps in which `advance` sets the clock forward while no handler runs. */
const STEPS = 10
/**
 * The worker reads waiting documents each minute. A read from before the clock moved lacks the documents that are due
 * now.
 */
const LOOK_MS = 65_000
const LOOKS = 2

/** See `startTestSidecar` in `testing.ts`. */
export async function start<M extends Machines>(
  handlersModule: HandlersModule<M>,
  options: TestSidecarOptions,
): Promise<TestSidecar> {
  const handlers = collectHandlers(handlersModule)
  const closing = new AbortController()
  return new Promise((resolve, reject) => {
    const running = withAcquired(async (acquire) => {
      const parts = await openParts(handlers, options, acquire, closing.signal)
      const close = () => {
        closing.abort(new Error('the test sidecar is closed'))
        return running
      }
      const sidecar = createTestSidecar(parts, close)
      acquire({ close: () => sidecar.crash() })
      await sidecar.restart()
      resolve(sidecar)
      await once(closing.signal, 'abort')
    })
    running.catch(reject)
  })
}

/** Opens a server, a mail catcher, and databases for this test. */
async function openParts(
  handlers: LoadedHandlers,
  { documents = [], databases = {}, settings = {}, couchdbUrl }: TestSidecarOptions,
  acquire: Acquire,
  signal: AbortSignal,
): Promise<Parts> {
  const log = pino({ level: settings.SIDECAR_LOG_LEVEL ?? 'silent' })
  const url = couchdbUrl ?? process.env.COUCHDB_URL ?? acquire(await startEmbeddedCouch({ log, signal })).url
  const catcher = acquire(await startMailCatcher({ log, signal }))
  const couch = acquire(createCouch({ url }))
  const database = `test-${randomBytes(6).toString('hex')}`
  const control = `${database}-control`
  for (const [name, docs] of Object.entries({ ...databases, [database]: documents, [control]: [] })) {
    const db = couch.db(name)
    if (!(await db.create()))
      throw new ConfigError([`databases: expected no database ${name} at ${couch.url} yet, found one`])
    acquire({ close: async () => void (await db.drop()) })
    for (const doc of docs) await db.put(doc)
  }
  return { handlers, couch, url, catcher, database, control, settings, log }
}

interface Parts {
  readonly handlers: LoadedHandlers
  readonly couch: Couch
  readonly url: string
  readonly catcher: MailCatcher
  readonly database: string
  readonly control: string
  readonly settings: Readonly<Record<string, string>>
  readonly log: Logger
}

function createTestSidecar(parts: Parts, close: () => Promise<void>): TestSidecar {
  const { couch, url, catcher, database, control, settings, log } = parts
  const clock = createShiftedClock()
  const watched = createWatched()
  const db = couch.db(database)
  let worker: Worker | undefined
  const connection = (): WorkerConnection => {
    if (!worker) throw new Error('the worker has crashed: call restart() first')
    return worker.connection
  }

  const config = (couchdbUrl: string): Config =>
    loadConfig({
      env: {
        ...{ SIDECAR_PORT: '0', SIDECAR_NAME: 'test', SIDECAR_GRACE: '1s', ...settings },
        ...{ COUCHDB_URL: couchdbUrl, SMTP_URL: catcher.smtpUrl },
        ...{ SIDECAR_DATABASES: database, SIDECAR_CONTROL_DB: control },
      },
    })
  const tables = tablesFor(couch, config(url), parts.handlers)

  /** Documents that need work now, for the message. */
  async function unsettled(): Promise<string[]> {
    const names = [database, control]
    const found = await Promise.all(
      names.map(async (name) => {
        const classify = createClassify(tables.of(name).table)
        const docs = await couch.db(name).withPrefix('')
        return docs.flatMap((doc) => {
          const { kind } = classify(doc, clock.now())
          return ASKING.has(kind) ? [`${doc._id} (${String(doc.type)} in ${String(doc.state)}): ${kind}`] : []
        })
      }),
    )
    return found.flat()
  }

  return {
    ...{ database, control, close },
    get mails() {
      return catcher.mails
    },
    put: (doc) => putInto(couch, database, doc),
    find: (id) => db.find(id),
    db: (name) => ({ find: (id) => couch.db(name).find(id), put: (doc) => putInto(couch, name, doc) }),
    until(id, wanted, { within = WITHIN_MS } = {}) {
      const isWanted = typeof wanted === 'string' ? (doc: StoredDoc) => doc.state === wanted : wanted
      const expected = typeof wanted === 'string' ? `${id} to be in the state ${wanted}` : `${id} to become as wanted`
      let last: StoredDoc | undefined
      return poll(
        async () => {
          last = await db.find(id)
          return last && isWanted(last) ? last : undefined
        },
        () => `expected ${expected} within ${within} ms, got ${inspect(last, { depth: 5 })}`,
        within,
      )
    },
    async settled({ within = WITHIN_MS } = {}) {
      let left: string[] = []
      await poll(
        async () => (left = await unsettled()).length === 0 || undefined,
        () => `expected that nothing is left to do within ${within} ms, but there is: ${left.join(', ')}`,
        within,
      )
    },
    async advance(time) {
      const ms = parseDuration(time)
      if (ms === undefined || !(ms > 0))
        throw new ConfigError([`advance: expected a time such as 90s or 2h, got ${inspect(time)}`])
      const { leaseMs } = config(url)
      const step = async (stepMs: number) => {
        clock.advance(stepMs)
        await worker?.connection.whenIdle() // work that is due now ends before the next step
      }
      for (let leftMs = ms; leftMs > 0;) {
        const stepMs = Math.min(leftMs, watched.running > 0 ? leaseMs / 4 : Math.max(leaseMs / 4, ms / STEPS))
        await step(stepMs)
        leftMs -= stepMs
      }
      for (let n = 0; n < LOOKS && watched.running === 0; n++) await step(LOOK_MS)
    },
    async crash() {
      const crashed = worker
      worker = undefined
      await crashed?.crash()
    },
    async restart() {
      if (worker) throw new Error('restart: expected a worker that has crashed, got one that runs')
      const connected = await openWorkerConnection(url, () => clock.aheadMs)
      worker = await startWorker({
        ...{ connection: connected, config: config(connected.url), handlers: parts.handlers, clock, log },
        watch: watched.watch,
      })
    },
    loseSave: (id) => connection().onWrite(id, { kind: 'lose-answer' }),
    conflict(id, change) {
      connection().onWrite(id, { kind: 'before', act: async () => void (await db.put(change(await db.get(id)))) })
    },
  }
}

/** Kinds of documents that need work now. */
const ASKING: ReadonlySet<string> = new Set(['ready', 'claimed', 'conflict', 'untimed'])

async function putInto<D extends Doc>(couch: Couch, name: string, doc: D): Promise<D & StoredDoc> {
  return { ...doc, _rev: await couch.db(name).put(doc) }
}
