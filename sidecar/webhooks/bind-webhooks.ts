import { ConfigError } from '../core/errors.ts'
import { isAmong } from '../core/glob.ts'
import type { LoadedHandlers } from '../docstate/handlers.ts'
import { loadTracing } from '../tracing/tracing.ts'
import { webhookUrl } from './webhook.ts'
import { createWebhookClient, type WebhookClient } from './webhook-client.ts'

export interface WebhookSettings {
  /** Hosts that may be called, with the port unless it is the scheme's default; `*` matches any characters. */
  readonly webhookHosts: readonly string[]
  readonly webhookKeys: readonly Buffer[]
}

/** Throws `ConfigError` with a fault for each webhook that the settings do not allow. */
export function checkWebhooks(handlers: LoadedHandlers, { webhookHosts, webhookKeys }: WebhookSettings): void {
  const all = addressesIn(handlers)
  const faults = all
    .map((url) => new URL(url).host)
    .filter((host) => !isAmong(host, webhookHosts))
    .map(
      (host) => `SIDECAR_WEBHOOK_HOSTS: expected to name ${host}, which a handler calls, got ${listed(webhookHosts)}`,
    )
  const none = all.length > 0 && webhookKeys.length === 0
  const shadows = handlers.shadows.filter(({ handler }) => webhookUrl(handler) !== undefined)
  const problems = [
    ...new Set(faults),
    ...(none ? ['SIDECAR_WEBHOOK_SECRETS: expected a secret to sign the calls, got none'] : []),
    ...shadows.map(
      ({ type, state }) =>
        `the shadow handler for ${type} in state ${state}: expected a function, got a webhook, whose effects cannot be withheld`,
    ),
  ]
  if (problems.length > 0) throw new ConfigError(problems)
}

const listed = (hosts: readonly string[]) => (hosts.length > 0 ? hosts.join(', ') : 'none')

function addressesIn({ registrations, shadows, schedules, deletions }: LoadedHandlers): string[] {
  return [...registrations, ...shadows, ...schedules, ...deletions].flatMap(({ handler }) => webhookUrl(handler) ?? [])
}

/** Replaces each webhook in the handlers by a call of this client. */
export function bindWebhooks(handlers: LoadedHandlers, client: WebhookClient): LoadedHandlers {
  if (addressesIn(handlers).length === 0) return handlers
  return {
    ...handlers,
    registrations: handlers.registrations.map((one) => {
      const url = webhookUrl(one.handler)
      return url === undefined ? one : { ...one, handler: (doc, ctx) => client.call(url, doc, ctx) }
    }),
    schedules: handlers.schedules.map((one) => {
      const url = webhookUrl(one.handler)
      return url === undefined ? one : { ...one, handler: async (run, ctx) => void (await client.call(url, run, ctx)) }
    }),
    deletions: handlers.deletions.map((one) => {
      const url = webhookUrl(one.handler)
      return url === undefined ? one : { ...one, handler: async (doc, ctx) => void (await client.call(url, doc, ctx)) }
    }),
  }
}

/** Runs `work` with these handlers; a client calls their webhooks until `work` ends. */
export async function withWebhooks(
  handlers: LoadedHandlers,
  { webhookKeys: keys }: Pick<WebhookSettings, 'webhookKeys'>,
  version: string,
  work: (bound: LoadedHandlers) => Promise<void>,
): Promise<void> {
  const client = createWebhookClient({ keys, version, now: Date.now, tracing: await loadTracing() })
  try {
    await work(bindWebhooks(handlers, client))
  } finally {
    await client.close()
  }
}
