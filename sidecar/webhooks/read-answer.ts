import { isObject } from '../../ddocs/lib/document.ts'
import { Reject, RetryLater } from '../core/errors.ts'
import { cut } from '../core/failure.ts'
import type { Doc } from '../couch/documents.ts'

export interface Answer {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

/** Statuses of 4xx that are worth a retry. */
const PASSING = [408, 425, 429]
const LONGEST_PAUSE_MS = 86_400_000
const MAX_CODE = 100

/**
 * Returns the next document in an answer, or undefined. `name` is the name of the call.
 *
 * @throws Reject if a retry does not help; RetryLater if the answer says when to retry
 */
export function readAnswer(name: string, { status, headers, text }: Answer, now: number): Doc | undefined {
  if (status >= 200 && status < 300) return text.trim() === '' ? undefined : documentIn(name, text)
  const { code, reason } = problemIn(name, status, text)
  if (status < 500 && !PASSING.includes(status)) throw new Reject(code, reason)
  const pauseMs = pauseIn(headers['retry-after'], now)
  if (pauseMs !== undefined) throw new RetryLater(code, reason, new Date(now + pauseMs))
  throw Object.assign(new Error(reason), { code })
}

function documentIn(name: string, text: string): Doc {
  const answer = parse(text)
  if (isObject(answer)) return answer as Doc
  throw new Reject('bad_answer', `${name}: expected the next document as JSON, or no content (204), got ${shown(text)}`)
}

/** Error code and reason after RFC 9457: `code`, or the end of `type`; `detail`, or `title`. */
function problemIn(name: string, status: number, text: string): { readonly code: string; readonly reason: string } {
  if (status >= 300 && status < 400) {
    return { code: 'redirected', reason: `${name}: ${status}: expected an answer, got a redirect` }
  }
  const problem = parse(text)
  const { code, type, detail, title } = isObject(problem) ? problem : {}
  const ending = typeof type === 'string' && type !== 'about:blank' ? /([\w.-]+)\/?$/.exec(type)?.[1] : undefined
  const said = [detail, title].find((one): one is string => typeof one === 'string' && one !== '') ?? shown(text)
  return {
    code: cut(typeof code === 'string' && code !== '' ? code : (ending ?? `http_${status}`), MAX_CODE),
    reason: `${name}: ${status}: ${said}`,
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const shown = (text: string) => (text.trim() === '' ? 'nothing' : JSON.stringify(cut(text.trim(), 100)))

/** Milliseconds from a number of seconds, or from an HTTP date; one day at most. */
function pauseIn(header: string | string[] | undefined, now: number): number | undefined {
  const text = String(header ?? '').trim()
  const ms = /^\d{1,10}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now
  return Number.isNaN(ms) ? undefined : Math.min(LONGEST_PAUSE_MS, Math.max(0, ms))
}
