/**
 * The sidecar's errors: one class for each decision that the program takes on an error. Each error has a stable `code`
 * and keeps its `cause`. Code recognises no error by its text. The text says what was expected, what came, and what to
 * do.
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
 * Thrown by a handler for a permanent failure. The document goes to `state: "error"` at once, with this code and
 * reason, without a retry.
 *
 * @example
 * if (!order.email) throw new Reject('no_address', 'an order needs an email address to send its invoice to')
 */
export class Reject extends SidecarError {
  override readonly name = 'Reject'

  get [REJECT](): true {
    return true
  }

  /** Also matches the `Reject` of another copy of this package: a module of handlers may bring its own. */
  static override [Symbol.hasInstance](thrown: unknown): boolean {
    return typeof thrown === 'object' && thrown !== null && REJECT in thrown
  }
}

const RETRY_LATER = Symbol.for('couchdb-sidecar:RetryLater')

/**
 * Thrown by a handler to set the time of the next attempt. The failed attempt counts. The next attempt is due after
 * this duration, or at this date, instead of after the handler's `backoff`.
 *
 * @example
 * if (response.status === 429) throw new RetryLater('rate_limited', 'the API wants a pause', '30s')
 */
export class RetryLater extends SidecarError {
  override readonly name = 'RetryLater'
  /** Milliseconds from now, or a date. */
  readonly when: number | Date

  /** @throws TypeError if `when` is no valid time */
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

/** A failure as documents and log lines hold it: a code and a sentence, never a stack or a secret. */
export interface Failure {
  readonly code: string
  readonly reason: string
}
