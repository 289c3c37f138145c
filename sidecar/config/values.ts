/**
 * The kinds of values that settings have. Each is a zod schema from text to the value. Its one error message is the
 * phrase that follows "expected" in a fault.
 */
import { z } from 'zod'
import { measure, parseDuration } from '../core/duration.ts'
import { parseSender } from '../mail/address.ts'
import { keyFrom } from '../webhooks/sign.ts'

const BYTES = { b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 } as const

/** Text that `parse` accepts; `undefined` from `parse` is a fault. */
const parsed = <T>(expected: string, parse: (text: string) => T | undefined) =>
  z.string().transform((text, context) => {
    const value = parse(text)
    if (value !== undefined) return value
    context.issues.push({ code: 'custom', message: expected, input: text })
    return z.NEVER
  })

export const whole = (from: number, to: number) => {
  const expected = `a whole number from ${from} to ${to}`
  return parsed(expected, (text) => {
    const number = /^\d{1,9}$/.test(text) ? Number(text) : NaN
    return number >= from && number <= to ? number : undefined
  })
}

/** A duration such as `24h`, in milliseconds. */
export const duration = (from: string, to?: string) => {
  const [leastMs, mostMs] = [parseDuration(from)!, to === undefined ? Infinity : parseDuration(to)!]
  const expected = to === undefined ? `of at least ${from}, such as 90s, 30m or 24h` : `from ${from} to ${to}`
  return parsed(`a time ${expected}`, (text) => {
    const ms = parseDuration(text)
    return ms !== undefined && ms >= leastMs && ms <= mostMs ? ms : undefined
  })
}

/** A size such as `16mb`, in bytes. */
export const bytes = (from: string) =>
  parsed(`a size of at least ${from}, such as 512kb or 16mb`, (text) => {
    const size = measure(text, BYTES)
    return size !== undefined && size >= (measure(from, BYTES) ?? 0) ? size : undefined
  })

/** Whether the percent-encoded user and password can be decoded: a bare `%` cannot. */
function isReadable({ username, password }: URL): boolean {
  try {
    decodeURIComponent(username)
    decodeURIComponent(password)
    return true
  } catch {
    return false
  }
}

/**
 * A URL without query or fragment, and without a trailing slash. An apparent query is usually a password with an
 * unescaped `?` or `#`, which would lead to another host.
 */
export const httpUrl = (example: string, credentials: 'allowed' | 'forbidden') =>
  parsed(`an address such as ${example} (special characters of a password percent-encoded)`, (text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined
    if (!url || !/^https?:$/.test(url.protocol) || /[?#]/.test(text) || url.pathname.includes('@')) return undefined
    if (!isReadable(url)) return undefined
    if (credentials === 'forbidden' && (url.username || url.password)) return undefined
    return url.href.replace(/\/+$/, '')
  })

/** Options for nodemailer may follow a `?` (`?tls.rejectUnauthorized=false`). */
export const smtpUrl = parsed(
  'an address such as smtp://user:password@host:587 or smtps://host (special characters percent-encoded)',
  (text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined
    const known = url && /^smtps?:$/.test(url.protocol) && url.hostname !== '' && !text.includes('#') && isReadable(url)
    return known && ['', '/'].includes(url.pathname) ? text : undefined
  },
)

export const sender = parsed('an address such as sidecar@example.com or Sidecar <sidecar@example.com>', (text) =>
  parseSender(text) ? text : undefined,
)

const DATABASE = /^_?[a-z][a-z0-9_$()+/-]*$/
const PATTERN = /^[_a-z*?][a-z0-9_$()+/*?-]*$/

export const database = z.string().regex(DATABASE, 'the name of a database (lowercase letters, digits and _$()+/-)')

const commas = (text: string) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean)

export const databases = parsed('names of databases and globs, separated by commas (control,userdb-*)', (text) => {
  const names = commas(text)
  return names.length > 0 && names.every((name) => PATTERN.test(name)) ? names : undefined
})

export const modules = parsed('paths of modules, separated by commas', commas)
export const folders = parsed('paths of folders, separated by commas', commas)

export const hosts = parsed('hosts, with their ports, separated by commas (billing:8080,*.example.com)', (text) => {
  const names = commas(text)
  return names.length > 0 && names.every((name) => /^[a-z0-9.*:[\]-]+$/.test(name)) ? names : undefined
})

/** Yields the keys of the secrets. */
export const webhookSecrets = parsed(
  'secrets of Standard Webhooks, separated by commas: whsec_ and 24 to 64 bytes in base64',
  (text) => {
    const keys = commas(text).map(keyFrom)
    return keys.length > 0 && keys.every((key) => key !== undefined) ? keys : undefined
  },
)

export const label = (expected: string) => z.string().regex(/^[\x21-\x7e]{1,128}$/, expected)
