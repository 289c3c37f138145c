import type { Context, MiddlewareHandler } from 'hono'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import type { Acquire } from './core/acquire.ts'
import type { Random } from './core/backoff.ts'
import { createByteBudget, type ByteBudget } from './core/byte-budget.ts'
import type { Clock } from './core/clock.ts'
import { Semaphore } from './core/semaphore.ts'
import { together } from './core/together.ts'
import { createCouch, type Couch, type CouchOptions } from './couch/client.ts'
import { createCouchClock } from './couch/couch-clock.ts'
import { createCredentialsCheck, type CredentialsCheck } from './couch/credentials-check.ts'
import { createSharedSurvey, type Survey } from './couch/survey.ts'
import { createSessions } from './couch/session.ts'
import type { LoadedHandlers } from './docstate/handlers.ts'
import { RecentFailures } from './docstate/recent-failures.ts'
import { startEmbeddedCouch, startMailCatcher, type MailCatcher } from './embedded/start.ts'
import { createEvents, type Events } from './events/channels.ts'
import { adminOnly, createAuthenticators, type Authenticate } from './http/authenticate.ts'
import { clientAddress } from './http/client-address.ts'
import { listen, type Listening } from './http/listen.ts'
import { createRecheck, type Recheck } from './http/recheck.ts'
import { createLiveSettings, type LiveSettings } from './live-settings/live-settings.ts'
import { createMailer, type Mailer } from './mail/mailer.ts'
import type { Templates } from './mail/templates.ts'
import { loadTracing, type Tracing } from './tracing/tracing.ts'
import { HeartbeatPayload } from './workers/heartbeat-payload.ts'
import { ROLE } from './workers/worker-documents.ts'
import { createRegistry, type Registry } from './workers/registry.ts'

export interface PlatformOptions {
  /** The version of this program. */
  readonly version: string
  readonly config: Config
  /** The user's own handlers. */
  readonly handlers: LoadedHandlers
  /** The texts of the mails. */
  readonly templates: Templates
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** Services that all features share. A feature takes what it needs; no code here knows a feature. */
export interface Platform extends PlatformOptions {
  /** Aborts when the sidecar must stop. */
  readonly signal: AbortSignal
  /** Whether CouchDB is the embedded server. */
  readonly embedded: boolean
  readonly couch: Connections
  /** URL by which devices reach CouchDB, without a trailing slash. */
  readonly syncUrl: string
  readonly credentialsCheck: CredentialsCheck
  /** Lists all databases; all features share its requests. */
  readonly survey: Survey
  /** Common base time in the clock's ticks, so that all periodic runs with `survey` are due together. */
  readonly alignedTo: number
  /** Limits the bytes of documents in flight in this process. */
  readonly byteBudget: ByteBudget
  /** Limits requests that write or hold documents, so that short requests find a free connection. */
  readonly turns: Semaphore
  readonly events: Events
  /** Stacks of failed handlers, for the operator's page. */
  readonly recentFailures: RecentFailures
  /** Undefined if the process has no tracer. */
  readonly tracing: Tracing | undefined
  readonly live: LiveSettings
  /** Whether the sidecar writes database events. Without them, features survey all databases more often. */
  readonly hasDatabaseEvents: () => boolean
  /** This worker's identity among all workers. */
  readonly worker: {
    readonly registry: Registry
    readonly role: string
    readonly self: string
    readonly payload: HeartbeatPayload
  }
  readonly mailer: Mailer
  /** Undefined if `SMTP_URL` is set. */
  readonly catcher: MailCatcher | undefined
  readonly http: Listening
  /** Base URL of the links in mails. */
  readonly publicUrl: string
  readonly authenticate: Authenticate
  readonly signIn: SignIn
  /** Renews the session of the request. Returns the new cookie, if CouchDB sends one. Throws `CouchError`. */
  readonly renewSession: (c: Context) => Promise<string | undefined>
  readonly adminOnly: MiddlewareHandler
  readonly recheck: Recheck
}

/** Starts a CouchDB session. Returns its cookie; undefined if name or password is wrong. Throws like `Authenticate`. */
export type SignIn = (
  c: Context,
  login: { readonly name: string; readonly password: string },
) => Promise<string | undefined>

/** Clients of one server. Each has its own connections, so that no client waits for another's requests. */
export interface Connections {
  /** The server's URL, with the sidecar's credentials. */
  readonly url: string
  /** For handlers, and all work without a client below. */
  readonly work: Couch
  /** For requests over HTTP: times out after ten seconds. */
  readonly answers: Couch
  /** For the feed of `/_db_updates`. */
  readonly updates: Couch
  /** For reading the state of indexes. */
  readonly indexes: Couch
  /** For waiting until an index is built. */
  readonly builds: Couch
}

/** Starts the services that features share. Resolves when CouchDB accepts the credentials and the port is bound. */
export async function startPlatform(
  options: PlatformOptions,
  acquire: Acquire,
  signal: AbortSignal,
): Promise<Platform> {
  const { config, random, log } = options
  const tracing = await loadTracing(log)
  if (tracing) acquire(tracing)
  const clock = createCouchClock(options.clock, log)
  const events = createEvents({ log })
  const embedded = config.couchdbUrl === undefined
  const url = config.couchdbUrl ?? acquire(await startEmbeddedCouch({ log, signal })).url
  const couch = connect(url, config, clock, acquire)
  const catcher = config.smtpUrl === undefined ? acquire(await startMailCatcher({ log, signal })) : undefined
  const smtpUrl = config.smtpUrl ?? catcher!.smtpUrl
  const mailer = acquire(createMailer({ smtpUrl, from: config.mailFrom, events, clock, log }))
  const credentialsCheck = createCredentialsCheck({ couch: couch.answers, clock, log })
  await credentialsCheck.untilAccepted(signal)

  const control = couch.work.db(config.controlDb, true)
  const payload = new HeartbeatPayload()
  const registry = acquire(createRegistry({ database: control, events, payload, clock, random, log }))
  const live = createLiveSettings({ database: couch.work.db(config.controlDb), events, clock, random, log })
  const sessions = acquire(createSessions({ url, isRefused: () => credentialsCheck.refusal !== undefined }))
  const clientOf = (c: Context) => clientAddress(c, config.proxies)
  const believedMs = Math.min(5_000, config.leaseMs / 3)
  const { authenticate, login } = createAuthenticators({ sessions, clientOf, believedMs, clock })
  const signIn: SignIn = async (c, typed) =>
    (await login(c, typed.name, typed.password)) && sessions.begin(typed, signal)
  const renewSession = (c: Context) => sessions.renew(c.req.header('cookie'), signal)
  const http = acquire(await listen({ host: config.host, port: config.port }))
  return {
    ...options,
    ...{
      clock,
      tracing,
      signal,
      embedded,
      couch,
      credentialsCheck,
      events,
      live,
      mailer,
      catcher,
      http,
      authenticate,
      signIn,
      renewSession,
    },
    syncUrl: config.couchdbPublicUrl ?? couch.work.url,
    publicUrl: config.publicUrl ?? `http://localhost:${http.port}`,
    survey: createSharedSurvey({ couch: couch.work, clock, signal }),
    alignedTo: clock.ticks() - random() * 60_000, // random: sidecars that start together are not due together
    byteBudget: createByteBudget(config.memoryBytes),
    recentFailures: new RecentFailures(clock),
    turns: new Semaphore(() => mostTurns(config)),
    hasDatabaseEvents: () => live.of('global_changes').update_db,
    worker: { registry, role: ROLE, self: config.name, payload },
    adminOnly: adminOnly({ authenticate }),
    recheck: createRecheck({ clock, everyMs: config.leaseMs / 3 }),
  }
}

/** Runs the platform's own work. */
export const runPlatform = ({ credentialsCheck, live }: Platform, signal: AbortSignal): Promise<void> =>
  together([(until) => credentialsCheck.watch(until), (until) => live.run(until)], signal)

function connect(url: string, config: Config, clock: CouchOptions['clock'], acquire: Acquire): Connections {
  const { connections } = config
  const own = { connections: OWN_CONNECTIONS }
  const client = (how: Omit<CouchOptions, 'url' | 'clock'>) => acquire(createCouch({ url, clock: clock!, ...how }))
  return {
    url,
    work: client({ connections, kept: connections - mostTurns(config) }),
    answers: client({ ...own, patienceMs: ANSWER_MS }),
    updates: client(own),
    indexes: client(own),
    builds: client(own),
  }
}

/** Maximum connections for writes and held documents. The rest is for requests with priority. */
const mostTurns = ({ connections }: Config) => Math.floor(connections * 0.75)
const OWN_CONNECTIONS = 16
/** Timeout of each answer of CouchDB: a client over HTTP waits for it. */
const ANSWER_MS = 10_000
