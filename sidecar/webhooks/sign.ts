import { createHmac } from 'node:crypto'

export interface Signed {
  /** The same for every try of one entry. */
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly body: string
  /** The keys of all secrets that hold: receivers that know any of them accept the call. */
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

/** The key of a secret as it is given to people; undefined for what is none. */
export function keyFrom(secret: string): Buffer | undefined {
  const [, base64] = SECRET.exec(secret) ?? []
  const key = Buffer.from(base64 ?? '', 'base64')
  return key.length >= 24 && key.length <= 64 ? key : undefined
}
