/**
 * Registers the device: sends its documents, then requests its status until it is active. Requests run one after the
 * other, and each result is stored before the next request. Offline, the registrar waits and resumes at the same step.
 */
import type { Store } from '../store.ts'
import type { Failure } from '../client-status.ts'
import { backoffMs, createBell } from '../time.ts'
import { DEFAULT_HASHING, hashPassword, type Hashing } from './credentials.ts'
import type { Inbox, Later } from './inbox.ts'
import {
  confirmDocumentOf,
  deviceDocumentOf,
  isRefused,
  REFUSED,
  revOf,
  withStatus,
  type Registration,
} from './registration.ts'

export interface RegistrarOptions {
  readonly store: Store
  readonly inbox: Inbox
  /** Replaces the hashing that the inbox reports. */
  readonly hashing?: Hashing
  readonly onFailure: (failure: Failure | undefined) => void
}

export interface Registrar {
  /** Runs until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
  /** Continues at once: something must be sent, or the network is back. */
  wake(): void
  /** Requests the status of an active device once: the device may be revoked, or the server may have moved. */
  check(): void
}

/** Pauses between requests for the status of a waiting device, milliseconds. They grow by the factor. */
const POLL_MS = { first: 2000, factor: 1.3, last: 60_000 }

export function createRegistrar({ store, inbox, hashing, onFailure }: RegistrarOptions): Registrar {
  const bell = createBell()
  let failures = 0
  let polls = 0
  let mustCheck = false

  /** Runs one step. Returns the pause until the next step, milliseconds. */
  async function step(signal: AbortSignal): Promise<number> {
    const { registration } = await store.load()
    if (!registration || registration.state === 'revoked' || isRefused(registration)) return idle()
    const { credentials, confirmation } = registration
    if (!credentials) return prepare(registration, signal)
    if (registration.state === 'unsent') return send(registration, signal)
    if (registration.wantsMail) return requestMail(registration, signal)
    if (confirmation?.state === 'unsent') return confirm(registration, signal)
    const isDone = registration.user !== undefined && registration.syncpoint !== undefined
    if (isDone && !mustCheck) return idle()
    return readStatus(registration, signal)
  }

  async function prepare({ id, password }: Registration, signal: AbortSignal): Promise<number> {
    const answer = hashing ? ({ kind: 'known', hashing } as const) : await inbox.hashing(signal)
    if (answer.kind === 'later') return later(answer)
    const credentials = await hashPassword(password, answer.hashing ?? DEFAULT_HASHING)
    return keep(id, () => ({ credentials }))
  }

  async function send(registration: Registration, signal: AbortSignal): Promise<number> {
    const { id } = registration
    const sent = await inbox.send(await deviceDocumentOf(registration), signal)
    switch (sent.kind) {
      case 'taken':
        return keep(id, () => ({ state: 'new', ...(sent.rev !== undefined && { rev: sent.rev }) }))
      case 'conflict': // the document exists, and has changed since
        return keep(id, () => ({ state: 'new' }))
      case 'refused':
        return keep(id, () => ({ state: 'error', error: { code: REFUSED, reason: sent.reason } }))
      case 'later':
        return later(sent)
    }
  }

  async function requestMail(registration: Registration, signal: AbortSignal): Promise<number> {
    const { id, rev } = registration
    const sent = await inbox.send(
      { ...(await deviceDocumentOf(registration)), ...(rev !== undefined && { _rev: rev }) },
      signal,
    )
    if (sent.kind === 'later') return later(sent)
    if (sent.kind === 'conflict') {
      const answer = await inbox.status(id, registration.secret, signal)
      if (answer.kind === 'later') return later(answer)
      if (answer.kind === 'status' && answer.status._rev !== rev) return keep(id, () => revOf(answer.status))
    }
    // The inbox refuses a request too soon after the last one: that mail is on its way.
    const state = sent.kind === 'taken' ? ({ state: 'new' } as const) : {}
    return keep(id, () => ({
      ...{ wantsMail: false, ...state },
      ...(sent.kind === 'taken' && sent.rev !== undefined && { rev: sent.rev }),
    }))
  }

  async function confirm(registration: Registration, signal: AbortSignal): Promise<number> {
    const { id, confirmation } = registration
    const sent = await inbox.send(await confirmDocumentOf(registration), signal)
    if (sent.kind === 'later') return later(sent)
    const next =
      sent.kind === 'refused'
        ? ({ state: 'error', error: { code: REFUSED, reason: sent.reason } } as const)
        : ({ state: 'clicked' } as const)
    return keepConfirmation(id, confirmation!.id, next)
  }

  /** Requests the status of the device, and of the code that the user typed. */
  async function readStatus({ id, secret, confirmation }: Registration, signal: AbortSignal): Promise<number> {
    if (confirmation?.state === 'clicked') {
      const answer = await inbox.status(confirmation.id, secret, signal)
      if (answer.kind === 'later') return later(answer)
      const state = answer.kind === 'unknown' ? 'unsent' : answer.status.state
      if (state !== 'clicked') {
        const error = answer.kind === 'status' ? answer.status.error : undefined
        const known = state === 'used' || state === 'unsent' ? state : 'error'
        await keepConfirmation(id, confirmation.id, { state: known, ...(error && { error: { code: error.code } }) })
      }
    }
    const answer = await inbox.status(id, secret, signal)
    if (answer.kind === 'later') return later(answer)
    mustCheck = false
    reached()
    if (answer.kind === 'unknown') await update(id, (before) => (before.user === undefined ? { state: 'unsent' } : {}))
    else await update(id, (before) => withStatus(before, answer.status))
    return Math.min(POLL_MS.last, POLL_MS.first * POLL_MS.factor ** Math.min(polls++, 20))
  }

  /** Changes only the registration that the answer is for: a new one may have replaced it. */
  async function update(id: string, next: (before: Registration) => Partial<Registration>): Promise<void> {
    await store.update((kept) => {
      if (kept.registration?.id !== id) return undefined
      const { error, ...rest } = { ...kept.registration, ...next(kept.registration) }
      const made = rest.state === 'error' && error ? { ...rest, error } : rest
      return JSON.stringify(made) === JSON.stringify(kept.registration) ? undefined : { ...kept, registration: made }
    })
  }

  async function keep(id: string, next: (before: Registration) => Partial<Registration>): Promise<number> {
    reached()
    polls = 0
    await update(id, next)
    return 0
  }

  const keepConfirmation = (
    id: string,
    confirmationId: string,
    next: Pick<NonNullable<Registration['confirmation']>, 'state' | 'error'>,
  ): Promise<number> =>
    keep(id, ({ confirmation }) =>
      confirmation?.id === confirmationId ? { confirmation: { ...confirmation, ...next } } : {},
    )

  /** No request is due, so no failure is left to show. */
  function idle(): number {
    reached()
    return Infinity
  }

  function reached(): void {
    failures = 0
    onFailure(undefined)
  }

  function later({ failure, afterMs = 0 }: Later): number {
    onFailure(failure)
    return Math.max(afterMs, backoffMs(++failures))
  }

  return {
    async run(signal) {
      // Only the local store throws: it may be full, or unavailable at the moment.
      const failed = (thrown: unknown) => later({ kind: 'later', failure: { code: 'failed', reason: String(thrown) } })
      while (!signal.aborted) await bell.wait(await step(signal).catch(failed), signal)
    },
    wake() {
      failures = 0
      polls = 0
      bell.ring()
    },
    check() {
      if (mustCheck) return
      mustCheck = true
      bell.ring()
    },
  }
}
