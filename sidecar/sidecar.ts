import type { Logger } from 'pino'
import { keepUserDatabases } from './accounts/deleted-databases.ts'
import type { Config } from './config.ts'
import { withAcquired, type Acquire } from './core/acquire.ts'
import type { Random } from './core/backoff.ts'
import type { Clock } from './core/clock.ts'
import { createByteBudget } from './core/byte-budget.ts'
import { Semaphore } from './core/semaphore.ts'
import { together } from './core/together.ts'
import { createCredentialsCheck } from './couch/credentials-check.ts'
import { createCouch, type CouchOptions } from './couch/client.ts'
import { createCouchClock } from './couch/couch-clock.ts'
import { createSessions } from './couch/session.ts'
import { createCompiler } from './deploy/compiler.ts'
import type { Engine } from './docstate/engine.ts'
import type { LoadedHandlers } from './docstate/handlers.ts'
import { Quarantine } from './docstate/quarantine.ts'
import { startEmbeddedCouch, startMailCatcher } from './embedded/start.ts'
import { createEvents } from './events/channels.ts'
import { createHttp } from './http/app.ts'
import { listen } from './http/listen.ts'
import { noArrivals } from './inbox/counts.ts'
import { createIndexes } from './indexes/indexes.ts'
import { keepNotes } from './indexes/notes.ts'
import { createLiveSettings } from './live-settings/live-settings.ts'
import { createMailer } from './mail/mailer.ts'
import type { Templates } from './mail/templates.ts'
import { createDbUpdates } from './global-changes/reading/db-updates.ts'
import { createGlobalChanges } from './global-changes/writing/global-changes.ts'
import { partitionBuckets } from './global-changes/writing/bucket-partition.ts'
import { capabilitiesOf, hasCapability, managesAccounts, buildsIndexes, ROLE, writesEvents } from './capabilities.ts'
import { patternsOf } from './databases/patterns.ts'
import { serveDatabases } from './databases/serve.ts'
import { createRoutes, MAILBOX, showsMails } from './routes.ts'
import { createTables } from './tables.ts'
import { createDatabaseCounters } from './database-counters.ts'
import { createRegistry } from './workers/registry.ts'
import { createNamePartition } from './workers/name-partition.ts'
import { createPartitioning } from './workers/partitioning.ts'

export interface SidecarOptions {
  /** Of this program. */
  readonly version: string
  readonly config: Config
  /** The user's own. */
  readonly handlers: LoadedHandlers
  /** Of the mails. */
  readonly templates: Templates
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Called once, when everything that can be reached from outside listens. */
  readonly onListening?: (addresses: Addresses) => void
}

/** What runs where. */
export interface Addresses {
  /** Of the sidecar's HTTP. */
  readonly sidecar: string
  /** With credentials where it is the embedded one, whose password nobody knows otherwise. */
  readonly couch: { readonly url: string; readonly embedded: boolean }
  /** Of the embedded mail catcher; `page` is where its mails show. */
  readonly mail: { readonly smtpUrl: string; readonly page: string | undefined } | undefined
}

/**
 * The composition root: builds every part, starts them in order, and runs until the signal aborts. Then the engines
 * stop first (feed, handlers, saves), and after them, in the order opposite to their start, everything they use.
 */
export async function runSidecar(options: SidecarOptions, signal: AbortSignal): Promise<void> {
  const { version, config, handlers, templates, random, log, onListening } = options
  const { controlDb, name, leaseMs, graceMs } = config
  const clock = createCouchClock(options.clock, log)
  await withAcquired((acquire) =>
    run(acquire).catch((thrown: unknown) => {
      if (!signal.aborted) throw thrown
    }),
  )

  async function run(acquire: Acquire): Promise<void> {
    const events = createEvents({ log })
    const embedded = config.couchdbUrl === undefined
    const url = config.couchdbUrl ?? acquire(await startEmbeddedCouch({ log, signal })).url
    const most = Math.floor(config.connections * MOST)
    const connect = (how: Omit<CouchOptions, 'url'>) => acquire(createCouch({ url, clock, ...how }))
    const couch = connect({ connections: config.connections, kept: config.connections - most })
    const answering = connect({ connections: ANSWERING_CONNECTIONS, patienceMs: ANSWER_MS })
    const reading = connect({ connections: ANSWERING_CONNECTIONS })
    const looking = connect({ connections: INDEXING_CONNECTIONS })
    const waiting = connect({ connections: INDEXING_CONNECTIONS })
    const catcher = config.smtpUrl === undefined ? acquire(await startMailCatcher({ log, signal })) : undefined
    const smtpUrl = config.smtpUrl ?? catcher!.smtpUrl
    const mailer = acquire(createMailer({ smtpUrl, from: config.mailFrom, events, log }))
    const credentialsCheck = createCredentialsCheck({ couch: answering, clock, log })
    await credentialsCheck.untilAccepted(signal)
    const engines = new Map<string, Engine>()
    const registry = acquire(createRegistry({ database: couch.db(controlDb, true), events, clock, random, log }))
    const feed = createDbUpdates({
      couch,
      answering: reading,
      name: config.globalChangesDb,
      events,
      clock,
      random,
      log,
    })
    const byteBudget = createByteBudget(config.memoryBytes)
    const turns = new Semaphore(() => most)
    const patterns = patternsOf(config)
    const databaseCounters = createDatabaseCounters(patterns)
    const readers = { open: 0, dropped: 0 }
    const sources = {
      ...{
        version,
        engines,
        databaseCounters: databaseCounters.all,
        byteBudget,
        mails: mailer.counts,
        readers,
        inbox: noArrivals(),
      },
      workers: () => registry.members(ROLE)?.members.length,
      dbUpdates: () => feed.counts(),
      globalChanges: () => globalChanges.counts(), // made below, before anybody can ask
      visited: () => served.visited.counts(),
      indexes: () => ({ counts: indexes.counts(), entries: indexes.entries(), now: clock.now() }),
    }

    const syncUrl = config.couchdbPublicUrl ?? couch.url
    const sessions = acquire(createSessions({ url, isRefused: () => credentialsCheck.refusal !== undefined }))
    const asked = {
      config,
      sources,
      couch: answering,
      syncUrl,
      credentialsCheck,
      sessions,
      events,
      feed,
      registry,
      catcher,
    }
    const routes = createRoutes({ ...asked, clock, log, signal })
    const { host, port } = config
    const never = new AbortController().signal // closed after the engines, not with them
    const http = acquire(await listen({ app: createHttp({ routes, log }), host, port, signal: never }))
    const page = catcher && showsMails(config) ? `${http.url}${MAILBOX}` : undefined
    onListening?.({ sidecar: http.url, couch: { url, embedded }, mail: catcher && { smtpUrl: catcher.smtpUrl, page } })

    const publicUrl = config.publicUrl ?? `http://localhost:${http.port}`
    const live = createLiveSettings({ database: couch.db(controlDb), events, clock, random, log })
    const areTold = () => live.of('global_changes').update_db
    const compiler = createCompiler()
    const tables = createTables({ config, handlers, couch, compiler, templates, clock, publicUrl, syncUrl })
    const settings = { worker: name, byteBudget, turns, quarantine: new Quarantine(clock), leaseMs, graceMs }
    registry.register(ROLE, name, { ...capabilitiesOf(config, tables), timeoutMs: leaseMs / 2 }, signal)
    const who = { registry, role: ROLE, self: name }
    const partitioning = createPartitioning({ ...who, serves: hasCapability, signal })
    const serving = {
      ...{ ...settings, controlDb, databases: patterns, jobOf: tables.of, partitioning },
      ...{ couch, compiler, engines, mailer, workers: registry, events },
      ...{ countsOf: databaseCounters.of, areTold, reads: config.reads, clock, random, log },
    }
    const served = serveDatabases(serving)
    const globalChanges = createGlobalChanges({
      ...{ couch, name: config.globalChangesDb, mayHaveFeed: !embedded, clock, random, log },
      partition: partitionBuckets(
        createNamePartition({ ...who, takesPart: writesEvents(config.globalChangesDb), signal }),
        signal,
      ),
      settings: live.of('global_changes'),
    })
    live.onChange('global_changes', (now) => globalChanges.change(now), signal)
    const indexes = createIndexes({
      ...{ couch: looking, patient: waiting, settings: live.of('ken'), events, clock, random, log },
      partition: createNamePartition({ ...who, takesPart: buildsIndexes, signal }),
      areTold,
    })
    live.onChange('ken', (now) => indexes.change(now), signal)
    const partition = createNamePartition({ ...who, takesPart: managesAccounts(controlDb), signal })
    const noting = { indexes, database: couch.db(controlDb), worker: name, clock, log }
    const parts = [
      (until: AbortSignal) => credentialsCheck.watch(until),
      (until: AbortSignal) => live.run(until),
      (until: AbortSignal) => feed.run(until),
      (until: AbortSignal) => served.run(until),
      (until: AbortSignal) => live.whenKnown(until).then(() => globalChanges.run(until)),
      (until: AbortSignal) => live.whenKnown(until).then(() => indexes.run(until)),
      (until: AbortSignal) => keepNotes(noting, until),
      (until: AbortSignal) => keepUserDatabases({ couch, controlDb, events, partition, clock, random, log }, until),
    ]
    await together(parts, signal)
  }
}

/** Of their own, twice: a build that is waited for must not keep others from being looked at, nor documents from being handled. */
const INDEXING_CONNECTIONS = 16
/** Which part of the connections writes and held documents take at most, and which part all that does not go first. */
const MOST = 0.75
/** Of their own, twice: those who ask over HTTP slow neither the sidecar's work nor, by the thousand, one another's. */
const ANSWERING_CONNECTIONS = 16
/** Whoever asks over HTTP waits for each answer of CouchDB. */
const ANSWER_MS = 10_000
