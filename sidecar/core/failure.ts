/**
 * Reads thrown values. A handler may throw anything: a proxy, an error whose message throws, nine megabytes. No
 * function here throws, and every text has a maximum length.
 */
import { inspect } from 'node:util'
import { Reject, SidecarError, type Failure } from './errors.ts'

const MAX_CODE = 100
const MAX_REASON = 500
const MAX_STACK = 4000
const MAX_CAUSES = 5

/** Options to print a value that is no error. They call neither getters nor traps of a proxy. */
export const SHOWN = { depth: 2, breakLength: Infinity, maxStringLength: 200, maxArrayLength: 10, customInspect: false }

/** Cuts a text to `most` characters. Replaces half a surrogate pair, which CouchDB refuses: it has no UTF-8. */
export function cut(text: string, most: number): string {
  const letters = [...text.slice(0, 2 * most)]
  const isWhole = letters.length <= most && text.length <= 2 * most
  return (isWhole ? text : `${letters.slice(0, most - 1).join('')}…`).toWellFormed()
}

/** Cuts a failure to a length that fits into a document and a log line. */
export const shortened = ({ code, reason }: Failure): Failure => ({
  code: cut(code, MAX_CODE),
  reason: cut(reason, MAX_REASON),
})

/** Like `instanceof`, but false if a proxy throws. */
export function isA<T>(thrown: unknown, kind: abstract new (...args: never) => T): thrown is T {
  try {
    return thrown instanceof kind
  } catch {
    return false
  }
}

/**
 * Converts a thrown value to a failure. The code is the first in the chain of causes, or else the error's
 * class: `fetch failed` has no code, its cause has `ECONNREFUSED`. The reason joins the messages of the chain. The
 * chain ends at an error of the sidecar: its causes may name addresses, or quote a server.
 */
export function failureOf(thrown: unknown): Failure {
  try {
    return shortened(read(thrown))
  } catch {
    return { code: 'thrown', reason: 'threw something that cannot be read' }
  }
}

/** Returns the stack if it helps. An error of the sidecar already says what is wrong. */
export function stackOf(thrown: unknown): string | undefined {
  try {
    if (!(thrown instanceof Error) || isOurs(thrown) || typeof thrown.stack !== 'string') return undefined
    const { stack } = thrown
    const frames = stack.search(/\n\s+at /)
    const head = frames < 0 ? stack : stack.slice(0, frames)
    return cut(head, MAX_REASON) + (frames < 0 ? '' : cut(stack.slice(frames), MAX_STACK))
  } catch {
    return undefined
  }
}

interface ErrorLike {
  readonly name?: unknown
  readonly message?: unknown
  readonly code?: unknown
  readonly cause?: unknown
  /** Field of an `AggregateError`: Node tries several addresses of a host. */
  readonly errors?: readonly unknown[]
}

const isOurs = (thrown: unknown): boolean => thrown instanceof SidecarError || thrown instanceof Reject

/** An error of another realm is no instance of this realm's `Error`, but has the same fields. */
const isErrorLike = (thrown: unknown): thrown is ErrorLike =>
  thrown instanceof Error || (typeof thrown === 'object' && thrown !== null && isText((thrown as ErrorLike).message))

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

function read(thrown: unknown): Failure {
  if (isText(thrown)) return { code: 'thrown', reason: thrown }
  const chain = chainOf(thrown)
  const [first] = chain
  if (!first) return { code: 'thrown', reason: `threw ${inspect(thrown, SHOWN)}, which is not an Error` }
  const name = isText(first.name) ? first.name : 'thrown'
  const reason = chain.reduce((said, { message }) => joined(said, message), '')
  return { code: chain.map(({ code }) => code).find(isText) ?? name, reason: reason || `${name}, without a message` }
}

/** Returns the error and its causes. */
function chainOf(thrown: unknown): ErrorLike[] {
  const chain: ErrorLike[] = []
  for (let one = thrown; chain.length < MAX_CAUSES && isErrorLike(one); one = one.cause ?? one.errors?.[0]) {
    chain.push(one)
    if (isOurs(one)) break
  }
  return chain
}

function joined(said: string, message: unknown): string {
  if (!isText(message) || said.includes(message)) return said
  return said === '' ? message : `${said}: ${message}`
}
