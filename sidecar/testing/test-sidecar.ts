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
  /** A CouchDB with an admin's credentials. Default `COUCHDB_URL`, and without it the embedded server. */
  readonly couchdbUrl?: string
  /** What is in the documents' database at first. Default nothing. */
  readonly documents?: readonly Doc[]
  /** Other databases, and what is in them: they must not be there yet. Default none. */
  readonly databases?: Readonly<Record<string, readonly Doc[]>>
  /** Settings of the sidecar, by their names, such as `SIDECAR_LEASE`. Its log is silent unless `SIDECAR_LOG_LEVEL` is among them. */
  readonly settings?: Readonly<Record<string, string>>
}

export interface WaitOptions {
  /** Milliseconds of real time; then it throws. Default 20,000. */
  readonly within?: number
}

/** A sidecar with a test's handlers, on databases of its own, and all that may happen to it. */
export interface TestSidecar {
  /** The database of the documents. */
  readonly database: string
  /** The control database, where the runs of schedules and of deletions are. */
  readonly control: string
  /** The mails that were sent, the newest last. */
  readonly mails: readonly CaughtMail[]
  /** Writes a document as an admin, and returns it as stored. Throws `CouchError`. */
  put<D extends Doc>(doc: D): Promise<D & StoredDoc>
  /** `undefined` if it is not there. Throws `CouchError`. */
  find(id: string): Promise<StoredDoc | undefined>
  /** Another database of the server. */
  db(name: string): Documents
  /** Resolves with the document when it is in the state, or as the function wants it. Throws when that takes too long. */
  until(id: string, wanted: string | ((doc: StoredDoc) => boolean), options?: WaitOptions): Promise<StoredDoc>
  /** Resolves when no document asks for anything now: each is done with, in `error`, parked, or waits for a later time. */
  settled(options?: WaitOptions): Promise<void>
  /**
   * Sets the clock forward, CouchDB's too: tries, ends of states and schedules within that time are due. Up to two minutes more
   * go by. Handlers that run keep their claims. Follow it by `until` or `settled`.
   */
  advance(time: Duration): Promise<void>
  /** As `kill -9` and a power cut: nothing of the worker reaches CouchDB from now on. Its handlers run on, and are not heard. */
  crash(): Promise<void>
  /** Starts a worker after a `crash`. Resolves when it is up. */
  restart(): Promise<void>
  /** The worker's next write of this document is stored, but the answer is lost. */
  loseSave(id: string): void
  /** Before the worker's next write of this document another one changes it: so that write is a conflict. */
  conflict(id: string, change: (doc: StoredDoc) => Doc): void
  /** Stops the worker, and deletes the databases that were made. */
  close(): Promise<void>
}

const WITHIN_MS = 20_000
/** In as many steps as this the clock is set forward, while no handler runs. */
const STEPS = 10
/** The worker looks at what waits each minute: a look that had begun at the time before has not seen what is due now. */
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

/** A server, a mail catcher, and databases of its own. */
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

  /** What asks for something now, for the message. */
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
        await worker?.connection.whenIdle() // what is due now is seen to before the next step
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
      if (worker) throw new Error('restart: expected a worker that has crashed, this one runs')
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

/** What asks for something now. */
const ASKING: ReadonlySet<string> = new Set(['ready', 'claimed', 'conflict', 'untimed'])

async function putInto<D extends Doc>(couch: Couch, name: string, doc: D): Promise<D & StoredDoc> {
  return { ...doc, _rev: await couch.db(name).put(doc) }
}
