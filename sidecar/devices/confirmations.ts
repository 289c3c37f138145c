import { createHash } from 'node:crypto'
import type { Clock } from '../core/clock.ts'
import type { Database } from '../couch/database.ts'
import type { Doc } from '../couch/documents.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import { findDevice, hashedPassword, type Device } from './device-documents.ts'
import { checkCodes, stateOfLink, type Codes } from './check-codes.ts'
import { makePassword, type Hashing, type MadePassword } from './passwords.ts'

/** What a user sends who follows the link and types in a code. All of it can be anything. */
export interface Click {
  readonly deviceId: string
  readonly confirmCode: string
  readonly deviceCode: string
  /** Aborts when they go away. */
  readonly signal: AbortSignal
}

export type ClickOutcome =
  /** With the credentials that were made for the device, if it asked for some: this once. */
  | { readonly kind: 'confirmed'; readonly user?: string | undefined; readonly password?: string | undefined }
  /** Wrong, used or unknown: the caller is not told which. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'expired' }
  /** Taken in, but not decided within the time it may take. The same click again is how one looks for the outcome. */
  | { readonly kind: 'pending' }

/** What a person sees who follows the link. */
export type Followed =
  | { readonly kind: 'open' | 'used'; readonly name: string | undefined; readonly owner: string }
  | { readonly kind: 'expired' }
  | { readonly kind: 'unknown' }

export interface Confirmations {
  /** Changes nothing: mail scanners follow links, too. */
  follow(link: Omit<Click, 'deviceCode'>): Promise<Followed>
  click(click: Click): Promise<ClickOutcome>
}

export interface ConfirmationsOptions {
  readonly database: Database
  readonly clock: Clock
  readonly hashing: Hashing
  /** How long the page waits for the outcome. Default 8 s. */
  readonly patienceMs?: number
}

const POLL_MS = 150

/**
 * What the confirm page does: writes the confirm document, as a device could do itself, and watches what becomes of
 * it. Its id follows from what was typed in, so that sending the form twice is one document.
 *
 * A confirm document holds the code of the link until it is handled, readable by all that may read the database.
 * So it is written only when it is right: it uses the code up. A wrong guess is counted beside the device, and for a
 * link that is not good nothing is written: strangers cannot fill the database.
 */
export function createConfirmations(options: ConfirmationsOptions): Confirmations {
  const { database, clock, hashing, patienceMs = 8000 } = options
  const clicks = createClicks()

  /** Writes the confirm document, with the hash of a password where the device has brought none. */
  async function write(_id: string, codes: Codes, device: Device, shared: SharedClick): Promise<void> {
    const triedBefore = shared.made !== undefined
    if (!hashedPassword(device.credentials)) shared.made ??= makePassword(hashing)
    const made = await shared.made
    try {
      const credentials = made && { credentials: made.hashed }
      await database.put({ _id, type: 'confirm', state: 'clicked', ...codes, ...credentials })
    } catch (thrown) {
      if (!isCouchError(thrown, 'conflict')) throw thrown
      if (!triedBefore) shared.made = undefined // another worker has written it: that password counts
    }
  }

  async function decide(id: string, codes: Codes, shared: SharedClick, signal: AbortSignal): Promise<ClickOutcome> {
    const find = (id: string) => database.find(id, {}, { signal })
    const put = (doc: Doc) => database.put(doc) // not cut short: a guess is counted also when its page is closed
    const until = clock.ticks() + patienceMs
    for (;;) {
      const weighed = await checkCodes({ find, put }, codes, clock.now())
      if (weighed.kind === 'refused') return refused(shared)
      if (weighed.kind === 'expired') return weighed
      const { device } = weighed
      if (device.state === 'active') return confirmed(device, id, shared)
      shared.written ??= write(id, codes, device, shared).catch((thrown: unknown) => {
        shared.written = undefined // the next click tries again
        throw thrown
      })
      await shared.written
      if ((await find(id))?.state === 'error') return refused(shared)
      if (clock.ticks() >= until) return { kind: 'pending' }
      await clock.sleep(POLL_MS, signal)
    }
  }

  return {
    async follow({ deviceId, confirmCode, signal }) {
      const device = await findDevice(deviceId, (id) => database.find(id, {}, { signal }))
      const state = stateOfLink(device, confirmCode, clock.now())
      if (state.kind === 'expired' || state.kind === 'unknown') return state
      return { kind: state.kind, name: state.device.name, owner: state.device.owner }
    },
    click({ deviceId, deviceCode, confirmCode, signal }) {
      const codes = { device_id: deviceId, device_code: deviceCode, confirm_code: confirmCode }
      const id = confirmIdOf(codes)
      return clicks.during(id, (shared) => decide(id, codes, shared, signal))
    },
  }
}

/** With the password, if it is this click that counted. */
async function confirmed({ user, confirmation }: Device, id: string, shared: SharedClick): Promise<ClickOutcome> {
  shared.shown = true
  const made = confirmation?.confirmed_by === id ? await shared.made : undefined
  return { kind: 'confirmed', user, password: made?.password }
}

function refused(shared: SharedClick): ClickOutcome {
  shared.made = undefined
  return { kind: 'refused' }
}

const confirmIdOf = (codes: Codes): string =>
  `confirm:${createHash('sha256').update(JSON.stringify(codes)).digest('hex').slice(0, 32)}`

/** What clicks with the same link and code share: those at the same time, and those after one that got no answer. */
export interface SharedClick {
  /** The password of a device that brought none; undefined where another one counts. */
  made: Promise<MadePassword> | undefined
  /** The writing of the confirm document. */
  written: Promise<void> | undefined
  /** Some page has said that it is confirmed, and shown the password. */
  shown: boolean
}

/**
 * Remembers the passwords that were made and that no page has shown yet. A form may be sent twice, and its answer may
 * come too late or get lost: then the next click shows the same password. In memory only: what a restart has forgotten
 * is mended by registering the device anew.
 */
interface Clicks {
  /** Runs a click with what it shares; that is forgotten after the last of those that saw the password. */
  during<T>(id: string, click: (shared: SharedClick) => Promise<T>): Promise<T>
}

/** Clicks that got no answer and did not come back: the oldest are forgotten first. */
const MAX_KEPT = 1000

export function createClicks(): Clicks {
  const kept = new Map<string, SharedClick & { running: number }>()

  function tidy(): void {
    for (const [id, { running, made, shown }] of kept) {
      if (running === 0 && (shown || !made || kept.size > MAX_KEPT)) kept.delete(id)
    }
  }

  return {
    async during(id, click) {
      const shared = kept.get(id) ?? { made: undefined, written: undefined, shown: false, running: 0 }
      kept.set(id, shared)
      shared.running += 1
      try {
        return await click(shared)
      } finally {
        shared.running -= 1
        tidy()
      }
    },
  }
}
