import { createHash } from 'node:crypto'
import { Reject } from '../core/errors.ts'
import type { Message } from '../docstate/mail.ts'
import { isAddress } from './address.ts'

/** The Message-ID of the message with this number (from 1) among those of an entry. */
export function messageIdOf(key: string, number: number, domain: string): string {
  const hash = createHash('sha256').update(`${number}\n${key}`).digest('hex').slice(0, 40)
  return `<${hash}@${domain}>`
}

type Untrusted<T> = { readonly [Field in keyof T]?: unknown }

/**
 * Refuses what no server should be asked to take. The values come from documents, so they may be of any type, whatever
 * the handler was declared to give.
 *
 * @throws Reject `bad_address`, `bad_header` or `bad_message`
 */
export function checkMessage({ to, subject, text, html }: Untrusted<Message>): void {
  if (typeof to !== 'string' || !isAddress(to)) {
    throw new Reject('bad_address', 'expected one plain email address as recipient')
  }
  if (typeof subject !== 'string' || /[\p{Cc}\u2028\u2029]/u.test(subject)) {
    throw new Reject('bad_header', 'expected a subject of one line, without control characters')
  }
  if (typeof text !== 'string' || (html !== undefined && typeof html !== 'string')) {
    throw new Reject('bad_message', 'expected the text of the message, and its HTML if any, as strings')
  }
}
