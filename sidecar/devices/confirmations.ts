import { createHash } from 'node:crypto'
import type { Clock } from '../core/clock.ts'
import type { Database } from '../couch/database.ts'
import type { Doc } from '../couch/documents.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import { findDevice, hashedPassword, type Device } from './device-documents.ts'
import { checkCodes, stateOfLink, type Codes } from './check-codes.ts'
import { makePassword, type Hashing, type MadePassword } from './passwords.ts'

/** Input of a user who follows the link and types in a code. All fields are unchecked. */
export interface Click {
  readonly deviceId: string
  readonly confirmCode: string
  readonly deviceCode: string
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal
}

export type ClickOutcome =
  /** With the credentials that were made for the device, if it requested some. They are shown only this once. */
  | { readonly kind: 'confirmed'; readonly user?: string | undefined; readonly password?: string | undefined }
  /** Wrong, used or unknown: the caller does not learn which. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'expired' }
  /** Accepted, but not decided within `patienceMs`. Repeat the same click to get the outcome. */
  | { readonly kind: 'pending' }

/** What the page shows to a user who follows the link. */
export type Followed =
  | { readonly kind: 'open' | 'used'; readonly name: string | undefined; readonly owner: string }
  | { readonly kind: 'expired' }
  | { readonly kind: 'unknown' }

export interface Confirmations {
  /** Reads the state of a link. Changes nothing: mail scanners follow links, too. */
  follow(link: Omit<Click, 'deviceCode'>): Promise<Followed>
  click(click: Click): Promise<ClickOutcome>
}

export interface ConfirmationsOptions {
  readonly database: Database
  readonly clock: Clock
  readonly hashing: Hashing
  /** How long the page waits for the outcome, milliseconds. Default 8000. */
  readonly patienceMs?: number
}

const POLL_MS = 150

/**
 * Does the work of the confirm page: writes the confirm document, as a device could do itself, and waits for its
 * outcome. The document's id follows from the input, so a form that is sent twice makes one document.
 *
 * Until it is handled, a confirm document holds the code of the link, for all readers of the database. So it is written
 * only if the codes are right: it uses the code up. A wrong guess is counted in another document. An invalid link
 * writes nothing: strangers cannot fill the database.
 */
export function createConfirmations(options: ConfirmationsOptions): Confirmations {
  const { database, clock, hashing, patienceMs = 8000 } = options
  const clicks = createClicks()

  /** Writes the confirm document, with the hash of a password if the device brought none. */
  async function write(_id: string, codes: Codes, device: Device, shared: SharedClick): Promise<void> {
    const triedBefore = shared.made !== undefined
    if (!hashedPassword(device.credentials)) shared.made ??= makePassword(hashing)
    const made = await shared.made
    try {
      const credentials = made && { credentials: made.hashed }
      await database.put({ _id, type: 'confirm', state: 'clicked', ...codes, ...credentials })
    } catch (thrown) {
      if (!isCouchError(thrown, 'conflict')) throw thrown
      if (!triedBefore) shared.made = undefined // another worker wrote the document: its password counts
    }
  }

  async function decide(id: string, codes: Codes, shared: SharedClick, signal: AbortSignal): Promise<ClickOutcome> {
    const find = (id: string) => database.find(id, {}, { signal })
    const put = (doc: Doc) => database.put(doc) // without the signal: a guess counts even if its page is closed
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

/** The outcome of a confirmed device, with the password if this click confirmed it. */
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

/** What clicks with the same link and code share: concurrent clicks, and clicks after one that got no answer. */
export interface SharedClick {
  /** The password for a device that brought none; undefined if another password counts. */
  made: Promise<MadePassword> | undefined
  /** The pending or completed write of the confirm document. */
  written: Promise<void> | undefined
  /** True after a page has shown the confirmation and the password. */
  shown: boolean
}

/**
 * Remembers passwords that no page has shown yet. A form may be sent twice, and an answer may come too late or get
 * lost: then the next click shows the same password. Passwords are in memory only: after a restart the device registers
 * anew.
 */
interface Clicks {
  /** Runs a click with its shared state. The state is dropped once the password was shown and no click runs. */
  during<T>(id: string, click: (shared: SharedClick) => Promise<T>): Promise<T>
}

/** Maximum number of remembered clicks without an answer: the oldest are dropped first. */
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
