import { Hono, type Context } from 'hono'
import type { Logger } from 'pino'
import { createAccounts } from './accounts/accounts.ts'
import { findHome } from './accounts/home.ts'
import type { Config } from './config.ts'
import type { Clock } from './core/clock.ts'
import type { Couch } from './couch/client.ts'
import type { CredentialsCheck } from './couch/credentials-check.ts'
import type { Sessions } from './couch/session.ts'
import { createConfirmations } from './devices/confirmations.ts'
import { couchHashing, embeddedHashing } from './devices/passwords.ts'
import { buildsIndexes, ROLE } from './capabilities.ts'
import { mailboxPage } from './embedded/mailbox-page.ts'
import type { MailCatcher } from './embedded/start.ts'
import type { Events } from './events/channels.ts'
import type { DbUpdates } from './global-changes/reading/db-updates.ts'
import { healthOf } from './health.ts'
import { adminOnly } from './http/admin-only.ts'
import { createAuthenticate } from './http/authenticate.ts'
import { clientAddress } from './http/client-address.ts'
import { confirmPage } from './devices/confirm-page.ts'
import { dbUpdates } from './global-changes/serving/db-updates-route.ts'
import { eventFeeds } from './events/event-feeds.ts'
import { inbox as inboxRoute } from './inbox/inbox-route.ts'
import { indexes } from './indexes/indexes-route.ts'
import { metrics } from './metrics/metrics-route.ts'
import { createRecheck } from './http/recheck.ts'
import { up } from './http/up.ts'
import { welcome } from './http/up.ts'
import { workers } from './workers/workers-route.ts'
import { createInbox } from './inbox/inbox.ts'
import { readNotes } from './indexes/notes.ts'
import { expose } from './metrics/exposition.ts'
import type { Sources } from './metrics/sources.ts'
import { listWorkers } from './workers/list.ts'
import type { Registry } from './workers/registry.ts'

export interface RoutesOptions {
  readonly config: Config
  readonly sources: Sources
  readonly couch: Couch
  /** Where devices reach CouchDB. */
  readonly syncUrl: string
  readonly credentialsCheck: CredentialsCheck
  readonly sessions: Sessions
  readonly events: Events
  readonly feed: DbUpdates
  readonly registry: Registry
  /** Where there is an embedded one. */
  readonly catcher: MailCatcher | undefined
  readonly clock: Clock
  readonly log: Logger
  /** The end of all that is open. */
  readonly signal: AbortSignal
}

/** Where mails show that the embedded catcher has caught. */
export const MAILBOX = '/_mail'

/** All that the sidecar's HTTP answers: the first that has a path answers it. */
export function createRoutes(options: RoutesOptions): Hono[] {
  const { config, sources, couch, syncUrl, sessions, events, feed, registry, catcher, clock, log, signal } = options
  const { name, leaseMs, proxies, inboxRate: perMinute, inboxWaiting: limit } = config
  const database = couch.db(config.controlDb)
  const hashing = config.couchdbUrl === undefined ? embeddedHashing : couchHashing
  const confirmations = createConfirmations({ database, clock, hashing })
  const homeOf = findHome(createAccounts(database), syncUrl)
  const inbox = createInbox({ database, homeOf, limit, clock, counts: sources.inbox, log })
  const clientOf = (c: Context) => clientAddress(c, proxies)
  const believedMs = Math.min(5_000, leaseMs / 3)
  const authenticate = createAuthenticate({ sessions, clientOf, believedMs, clock })
  const recheck = createRecheck({ clock, everyMs: leaseMs / 3 })
  const admin = adminOnly({ authenticate })
  return [
    up({ health: () => healthOf(sources.engines, options.credentialsCheck) }),
    workers({ adminOnly: admin, list: (signal) => listWorkers(database, signal) }),
    eventFeeds({ events, adminOnly: admin, recheck, clock, counts: sources.readers, signal }),
    dbUpdates({ feed, authenticate, recheck, clock, log, signal }),
    welcome(),
    indexes({
      ...{ adminOnly: admin, worker: name, clock },
      indexes: { counts: () => sources.indexes().counts, entries: () => sources.indexes().entries },
      notes: (signal) => readNotes(database, othersIn(registry, name), signal),
    }),
    metrics({ authenticate, expose: (format) => expose(sources, format) }),
    confirmPage({ confirmations, log }),
    ...(perMinute > 0 ? [inboxRoute({ inbox, hashing, perMinute, limit, proxies, clock, counts: sources.inbox })] : []),
    ...(catcher && showsMails(config) ? [new Hono().route(MAILBOX, mailboxPage(catcher))] : []),
  ]
}

const othersIn = (registry: Registry, self: string) =>
  (registry.members(ROLE)?.members ?? [])
    .filter((member) => member.id !== self && buildsIndexes(member))
    .map(({ id }) => id)

/** Mails hold links that confirm: they are shown to this machine only, and not where a proxy opens it to others. */
export const showsMails = ({ host, publicUrl }: Config): boolean =>
  publicUrl === undefined && (host === 'localhost' || host === '::1' || host.startsWith('127.'))
