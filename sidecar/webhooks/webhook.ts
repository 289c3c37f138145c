import { ConfigError } from '../core/errors.ts'

/** For a module of handlers that comes with its own copy of this package, too. */
const URL_OF = Symbol.for('couchdb-sidecar:webhook')

/** A handler of any kind that is a program elsewhere. Called by itself it only refuses: a running sidecar puts a call in its place. */
export type Webhook = (() => Promise<never>) & { readonly [URL_OF]: string }

/**
 * A handler in another language: each document is sent to this address, signed after [Standard Webhooks](https://www.standardwebhooks.com),
 * and the answer is what the handler returns. Its host has to be among `SIDECAR_WEBHOOK_HOSTS`. See docs/webhooks.md.
 *
 * @example
 * control.unsafe('order', 'paid', webhook('http://billing:8080/order-paid'), { timeout: '30s' })
 * @throws ConfigError if it is no address of HTTP, or has credentials in it
 */
export function webhook(address: string | URL): Webhook {
  const url = URL.canParse(String(address)) ? new URL(address) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.hash) {
    throw new ConfigError([
      `webhook: expected an address such as https://billing.example.com/order-paid, without credentials, got ${withoutCredentials(address)}`,
    ])
  }
  const refuse = () => Promise.reject(new Error(`the webhook ${url.href} is called by a running sidecar only`))
  return Object.assign(refuse, { [URL_OF]: url.href })
}

/** The address of a handler that is a webhook. */
export const webhookUrl = (handler: object): string | undefined => (handler as Partial<Webhook>)[URL_OF]

const withoutCredentials = (address: string | URL) => String(address).replace(/\/\/[^/@]*@/, '//***@')
