/**
 * The errors of the house: one class for each decision that the program takes because of it. Each has a stable `code`
 * (nothing is ever recognised by its text), keeps its `cause`, and its text says what was expected, what came and
 * what to do.
 */
import { parseDuration, type Duration } from './duration.ts'

export class SidecarError extends Error {
  override readonly name: string = 'SidecarError'
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Wrong usage or settings: the process ends with exit code 2 after printing every fault. */
export class ConfigError extends SidecarError {
  override readonly name = 'ConfigError'
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    super('config', faults.join('\n'))
    this.faults = faults
  }
}

const REJECT = Symbol.for('couchdb-sidecar:Reject')

/**
 * Thrown by a handler to say "never": the document goes to `state: "error"` at once, with this code and reason in it,
 * and is not tried again.
 *
 * @example
 * if (!order.email) throw new Reject('no_address', 'an order needs an email address to send its invoice to')
 */
export class Reject extends SidecarError {
  override readonly name = 'Reject'

  get [REJECT](): true {
    return true
  }

  /** A module of handlers may come with its own copy of this package, and throws that one's `Reject`. */
  static override [Symbol.hasInstance](thrown: unknown): boolean {
    return typeof thrown === 'object' && thrown !== null && REJECT in thrown
  }
}

const RETRY_LATER = Symbol.for('couchdb-sidecar:RetryLater')

/**
 * Thrown by a handler to say when its next try makes sense: this one has failed and counts, and the next is due after this
 * time, or at it, instead of after the handler's `backoff`.
 *
 * @example
 * if (response.status === 429) throw new RetryLater('rate_limited', 'the API wants a pause', '30s')
 */
export class RetryLater extends SidecarError {
  override readonly name = 'RetryLater'
  /** Milliseconds from now, or when. */
  readonly when: number | Date

  /** @throws TypeError if `when` is no time */
  constructor(code: string, message: string, when: Duration | Date) {
    super(code, message)
    const ms = when instanceof Date ? when.getTime() : parseDuration(when)
    if (ms === undefined || Number.isNaN(ms))
      throw new TypeError(`RetryLater: expected a time such as 30s, or a Date, got ${String(when)}`)
    this.when = when instanceof Date ? when : ms
  }

  get [RETRY_LATER](): true {
    return true
  }

  static override [Symbol.hasInstance](thrown: unknown): boolean {
    return typeof thrown === 'object' && thrown !== null && RETRY_LATER in thrown
  }
}

/** What went wrong as it is written into a document or a log line: a code and a sentence, never a stack or a secret. */
export interface Failure {
  readonly code: string
  readonly reason: string
}
