import { accountsFeature } from './accounts/accounts-feature.ts'
import { withAcquired } from './core/acquire.ts'
import { together } from './core/together.ts'
import { databasesFeature } from './databases/databases-feature.ts'
import { devicesFeature } from './devices/devices-feature.ts'
import { mailboxFeature, mailboxUrl } from './embedded/mailbox-feature.ts'
import { eventsFeature } from './events/events-feature.ts'
import type { Feature } from './feature.ts'
import { globalChangesFeature } from './global-changes/global-changes-feature.ts'
import { createHttp } from './http/app.ts'
import { up, welcome } from './http/up.ts'
import { historyFeature } from './history/history-feature.ts'
import { inboxFeature } from './inbox/inbox-feature.ts'
import { indexesFeature } from './indexes/indexes-feature.ts'
import { mailFeature } from './mail/mail-feature.ts'
import { metricsOf } from './metrics/metric.ts'
import { metricsRoute } from './metrics/metrics-route.ts'
import { buildMetrics, processMetrics } from './metrics/process-metrics.ts'
import { runPlatform, startPlatform, type Platform, type PlatformOptions } from './platform.ts'
import { operatorPageFeature } from './operator-page/operator-page-feature.tsx'
import { schedulesFeature } from './schedules/schedules-feature.ts'
import type { WorkerOptions } from './workers/worker-documents.ts'
import { workersFeature } from './workers/workers-feature.ts'

export interface SidecarOptions extends PlatformOptions {
  /** Called once, when all ports that clients use are bound. `problems` returns the current ones, like `GET /_up`. */
  readonly onListening?: (addresses: Addresses, problems: () => readonly string[]) => void
}

/** Addresses of the running parts. */
export interface Addresses {
  /** URL of the sidecar's HTTP. */
  readonly sidecar: string
  /** The URL of the embedded server contains its random password. */
  readonly couch: { readonly url: string; readonly embedded: boolean }
  /** The embedded mail catcher; `page` is the URL of the page with its mails. */
  readonly mail: { readonly smtpUrl: string; readonly page: string | undefined } | undefined
}

/** All features. To add one: a folder, and a line here. */
const FEATURES: readonly ((platform: Platform) => Feature)[] = [
  ...[databasesFeature, accountsFeature, devicesFeature, inboxFeature],
  ...[
    globalChangesFeature,
    indexesFeature,
    schedulesFeature,
    historyFeature,
    eventsFeature,
    workersFeature,
    mailFeature,
    mailboxFeature,
  ],
]

/**
 * The composition root. Starts the shared services, creates the features, and runs them until the signal aborts. Then
 * the features stop together (feeds, handlers, saves), and the services close in reverse order of their start.
 */
export async function runSidecar(options: SidecarOptions, signal: AbortSignal): Promise<void> {
  await withAcquired(async (acquire) => {
    try {
      const platform = await startPlatform(options, acquire, signal)
      const features = FEATURES.map((create) => create(platform))
      const problems = () => problemsOf(platform, features)
      const metrics = () => features.flatMap((feature) => feature.metrics ?? [])
      features.push(operatorPageFeature({ ...platform, problems, metrics }))
      serve(platform, features, problems)
      register(platform, features)
      options.onListening?.(addressesOf(platform), problems)
      const runs = features.flatMap(({ run }) => run ?? [])
      await together([(until) => runPlatform(platform, until), ...runs], signal)
    } catch (thrown) {
      if (!signal.aborted) throw thrown
    }
  })
}

/** Current problems of this worker. */
function problemsOf({ credentialsCheck }: Platform, features: readonly Feature[]): readonly string[] {
  const refusal = credentialsCheck.refusal === undefined ? [] : ['CouchDB refuses the sidecar, see its log']
  return [...refusal, ...features.flatMap((feature) => feature.problems?.() ?? [])]
}

function serve(
  { http, authenticate, version, log }: Platform,
  features: readonly Feature[],
  problems: () => readonly string[],
) {
  const metrics = [
    ...features.flatMap((feature) => feature.metrics ?? []),
    ...[metricsOf(buildMetrics, version), metricsOf(processMetrics, undefined)],
  ]
  const own = [up({ problems }), metricsRoute({ authenticate, metrics })]
  const routes = [...own, ...features.flatMap((feature) => feature.routes ?? []), welcome()]
  http.serve(createHttp({ routes, log }))
}

function register({ worker: { registry, role, self }, config, signal }: Platform, features: readonly Feature[]): void {
  const capabilities = Object.assign({}, ...features.map((feature) => feature.capabilities)) as WorkerOptions
  registry.register(role, self, { ...capabilities, timeoutMs: config.leaseMs / 2 }, signal)
}

function addressesOf(platform: Platform): Addresses {
  const { http, couch, embedded, catcher } = platform
  const mail = catcher && { smtpUrl: catcher.smtpUrl, page: mailboxUrl(platform, http.url) }
  return { sidecar: http.url, couch: { url: couch.url, embedded }, mail }
}
