/**
 * Checks of single fields. Each returns its faults as sentences: the field, the expected value, and the received one.
 */
import { has, quote, type Doc } from './document.ts'
import { same } from './same.ts'

/** C0 and C1 controls and the two line separators, which could end a line in a mail or a log. */
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/

/** Text of 1 to `max` UTF-16 units on one line. */
export function textFaults(doc: Doc, field: string, max: number): string[] {
  const value = doc[field]
  const fine = typeof value === 'string' && value.length > 0 && value.length <= max && !CONTROL.test(value)
  return fine ? [] : [`${field}: expected 1 to ${max} characters without control characters, got ${quote(value)}`]
}

export function patternFaults(doc: Doc, field: string, pattern: RegExp, expected: string): string[] {
  const value = doc[field]
  return typeof value === 'string' && pattern.test(value) ? [] : [`${field}: expected ${expected}, got ${quote(value)}`]
}

const SHA_256 = /^[0-9a-f]{64}$/

/**
 * Faults of `secret_sha256`: by this hash, the inbox identifies a writer without a name. Faults do not show the value:
 * it may be the secret itself.
 */
export const secretFaults = ({ secret_sha256: hash }: Doc): string[] =>
  hash === undefined || (typeof hash === 'string' && SHA_256.test(hash))
    ? []
    : ['secret_sha256: expected the SHA-256 of a secret, in 64 lowercase hexadecimal digits']

/** CouchDB's own fields that a document may have. Not `_attachments`: these documents have none. */
const RESERVED = ['_id', '_rev', '_revisions', '_conflicts']

export function unknownFaults(doc: Doc, known: readonly string[]): string[] {
  const unknown = Object.keys(doc).filter((field) => known.indexOf(field) < 0 && RESERVED.indexOf(field) < 0)
  return unknown.length === 0
    ? []
    : [`expected no fields but ${known.join(', ')}, got ${quote(unknown.slice(0, 3).join(', '))}`]
}

/** Faults of fields that differ from `before`. `expected` in words: unchanged, or written by the sidecar only. */
export function unchangedFaults(doc: Doc, before: Doc | null, fields: readonly string[], expected: string): string[] {
  return fields
    .filter((field) => !same(doc[field], before?.[field]))
    .map((field) => `${field}: expected ${expected}, got ${quote(doc[field])}`)
}

/** The fields that the document has. */
export const presentOf = (doc: Doc, fields: readonly string[]): string[] => fields.filter((field) => has(doc, field))
