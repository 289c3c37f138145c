/**
 * Registers the device: sends what is to be sent, asks for its status until it is active. One request after the other; what
 * each has brought is kept before the next. Offline, it waits and begins where it was.
 */
import type { Store } from '../store.ts'
import type { Failure } from '../client-status.ts'
import { backoffMs, createBell } from '../time.ts'
import { DEFAULT_HASHING, hashPassword, type Hashing } from './credentials.ts'
import { confirmDocumentOf, deviceDocumentOf, revOf, withStatus } from './registration-documents.ts'
import type { Inbox, Later } from './inbox.ts'
import { isRefused, REFUSED, type Registration } from './registration.ts'

export interface RegistrarOptions {
  readonly store: Store
  readonly inbox: Inbox
  /** Instead of what the inbox tells. */
  readonly hashing?: Hashing
  readonly onFailure: (failure: Failure | undefined) => void
}

export interface Registrar {
  /** Until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
  /** Goes on at once: there is something to send, or the network is back. */
  wake(): void
  /** Asks once for the status of a device that is active: it may have been revoked, or the server may have moved. */
  check(): void
}

/** How often the status of a device is asked for that waits: less and less often. */
const POLL_MS = { first: 2000, factor: 1.3, last: 60_000 }

export function createRegistrar({ store, inbox, hashing, onFailure }: RegistrarOptions): Registrar {
  const bell = createBell()
  let failures = 0
  let polls = 0
  let mustCheck = false

  /** How long to wait until the next step, milliseconds. */
  async function step(signal: AbortSignal): Promise<number> {
    const { registration } = await store.load()
    if (!registration || registration.state === 'revoked' || isRefused(registration)) return idle()
    const { credentials, confirmation } = registration
    if (!credentials) return prepare(registration, signal)
    if (registration.state === 'unsent') return send(registration, signal)
    if (registration.wantsMail) return askForMail(registration, signal)
    if (confirmation?.state === 'unsent') return confirm(registration, signal)
    const isDone = registration.user !== undefined && registration.syncpoint !== undefined
    if (isDone && !mustCheck) return idle()
    return ask(registration, signal)
  }

  async function prepare({ id, password }: Registration, signal: AbortSignal): Promise<number> {
    const told = hashing ? ({ kind: 'told', hashing } as const) : await inbox.hashing(signal)
    if (told.kind === 'later') return later(told)
    const credentials = await hashPassword(password, told.hashing ?? DEFAULT_HASHING)
    return keep(id, () => ({ credentials }))
  }

  async function send(registration: Registration, signal: AbortSignal): Promise<number> {
    const { id } = registration
    const sent = await inbox.send(await deviceDocumentOf(registration), signal)
    switch (sent.kind) {
      case 'taken':
        return keep(id, () => ({ state: 'new', ...(sent.rev !== undefined && { rev: sent.rev }) }))
      case 'conflict': // it is there, and has gone on since
        return keep(id, () => ({ state: 'new' }))
      case 'refused':
        return keep(id, () => ({ state: 'error', error: { code: REFUSED, reason: sent.reason } }))
      case 'later':
        return later(sent)
    }
  }

  async function askForMail(registration: Registration, signal: AbortSignal): Promise<number> {
    const { id, rev } = registration
    const sent = await inbox.send(
      { ...(await deviceDocumentOf(registration)), ...(rev !== undefined && { _rev: rev }) },
      signal,
    )
    if (sent.kind === 'later') return later(sent)
    if (sent.kind === 'conflict') {
      const asked = await inbox.status(id, registration.secret, signal)
      if (asked.kind === 'later') return later(asked)
      if (asked.kind === 'status' && asked.status._rev !== rev) return keep(id, () => revOf(asked.status))
    }
    // Refused is one that was asked for too soon after the last: that mail is under way.
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

  /** What became of the device, and of the code that was typed in. */
  async function ask({ id, secret, confirmation }: Registration, signal: AbortSignal): Promise<number> {
    if (confirmation?.state === 'clicked') {
      const asked = await inbox.status(confirmation.id, secret, signal)
      if (asked.kind === 'later') return later(asked)
      const state = asked.kind === 'unknown' ? 'unsent' : asked.status.state
      if (state !== 'clicked') {
        const error = asked.kind === 'status' ? asked.status.error : undefined
        const known = state === 'used' || state === 'unsent' ? state : 'error'
        await keepConfirmation(id, confirmation.id, { state: known, ...(error && { error: { code: error.code } }) })
      }
    }
    const asked = await inbox.status(id, secret, signal)
    if (asked.kind === 'later') return later(asked)
    mustCheck = false
    reached()
    if (asked.kind === 'unknown') await update(id, (before) => (before.user === undefined ? { state: 'unsent' } : {}))
    else await update(id, (before) => withStatus(before, asked.status))
    return Math.min(POLL_MS.last, POLL_MS.first * POLL_MS.factor ** Math.min(polls++, 20))
  }

  /** Only of the registration that the answer is of: meanwhile there may be another one. */
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

  /** Nothing is to be asked: then nothing is wrong. */
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
      // What throws is the local store: it may be full, or not there at the moment.
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
