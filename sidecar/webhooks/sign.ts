import { createHmac } from 'node:crypto'

export interface Signed {
  /** The same for every attempt of one entry. */
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly body: string
  /** Keys of all valid secrets: a receiver that knows any of them accepts the call. */
  readonly keys: readonly Buffer[]
}

/** The headers of Standard Webhooks, version 1 of symmetric signatures (https://www.standardwebhooks.com). */
export function signatureHeaders({ id, now, body, keys }: Signed): Record<string, string> {
  const timestamp = String(Math.floor(now / 1000))
  const signatures = keys.map(
    (key) => `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`,
  )
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') }
}

const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/

/** The key in a secret such as `whsec_…`; undefined if the secret is invalid. */
export function keyFrom(secret: string): Buffer | undefined {
  const [, base64] = SECRET.exec(secret) ?? []
  const key = Buffer.from(base64 ?? '', 'base64')
  return key.length >= 24 && key.length <= 64 ? key : undefined
}
