import { ConfigError } from '../core/errors.ts'

/** Shared between copies of this package: a module of handlers may bring its own. */
const URL_OF = Symbol.for('couchdb-sidecar:webhook')

/**
 * A handler of any kind in another program. A direct call is refused: a running sidecar replaces it by an HTTP call.
 */
export type Webhook = (() => Promise<never>) & { readonly [URL_OF]: string }

/**
 * Declares a handler in another program. The sidecar sends each document to this address, signed after [Standard
 * Webhooks](https://www.standardwebhooks.com), and the answer is the handler's result. The host must be in
 * `SIDECAR_WEBHOOK_HOSTS`. See docs/webhooks.md.
 *
 * @example
 * control.unsafe('order', 'paid', webhook('http://billing:8080/order-paid'), { timeout: '30s' })
 * @throws ConfigError if the address is not http or https, or holds credentials
 */
export function webhook(address: string | URL): Webhook {
  const url = URL.canParse(String(address)) ? new URL(address) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.hash) {
    throw new ConfigError([
      `webhook: expected an address such as https://billing.example.com/order-paid, without credentials, got ${withoutCredentials(address)}`,
    ])
  }
  const refuse = () => Promise.reject(new Error(`the webhook ${url.href} is called only by a running sidecar`))
  return Object.assign(refuse, { [URL_OF]: url.href })
}

/** The address of a webhook; undefined for any other handler. */
export const webhookUrl = (handler: object): string | undefined => (handler as Partial<Webhook>)[URL_OF]

const withoutCredentials = (address: string | URL) => String(address).replace(/\/\/[^/@]*@/, '//***@')
