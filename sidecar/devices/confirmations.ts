import { createHash } from 'node:crypto'
import type { Clock } from '../core/clock.ts'
import type { Database } from '../couch/database.ts'
import { isCouchError } from '../couch/errors.ts'
import type { ClickOutcome, Confirmations } from '../http/confirmations.ts'
import { judge, withWrong } from './confirm-clicked.ts'
import { findDevice, hashedPassword, type Device, type StoredDevice } from './documents.ts'
import { makePassword, type Hashing } from './passwords.ts'
import { createClicks, type SharedClick } from './clicks.ts'

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
 * A confirm document holds the code of the link until it is handled, for everybody to read who may read the database.
 * So it is written only when it is right: it uses the code up. A wrong guess is counted in the device's document, and
 * for a link that is not good nothing is written: strangers cannot fill the database.
 */
export function createConfirmations(options: ConfirmationsOptions): Confirmations {
  const { database, clock, hashing, patienceMs = 8000 } = options
  const clicks = createClicks()

  /** Writes the confirm document, with the hash of a password where the device has brought none. */
  async function write(_id: string, fields: Fields, device: Device, shared: SharedClick): Promise<void> {
    const triedBefore = shared.made !== undefined
    if (!hashedPassword(device.credentials)) shared.made ??= makePassword(hashing)
    const made = await shared.made
    try {
      const credentials = made && { credentials: made.hashed }
      await database.put({ _id, type: 'confirm', state: 'clicked', ...fields, ...credentials })
    } catch (thrown) {
      if (!isCouchError(thrown, 'conflict')) throw thrown
      if (!triedBefore) shared.made = undefined // another worker has written it: that password counts
    }
  }

  /** Counts a wrong guess; false if the device has changed meanwhile. */
  async function count(device: StoredDevice, id: string): Promise<boolean> {
    try {
      await database.put(withWrong(device, id, clock.now()))
      return true
    } catch (thrown) {
      if (isCouchError(thrown, 'conflict')) return false
      throw thrown
    }
  }

  async function decide(id: string, fields: Fields, shared: SharedClick, signal: AbortSignal): Promise<ClickOutcome> {
    const find = (id: string) => database.find(id, {}, { signal })
    const until = clock.ticks() + patienceMs
    for (;;) {
      const device = await findDevice(fields.device_id, find)
      const { kind } = judge(device, fields.device_code, fields.confirm_code, clock.now())
      if (!device || kind === 'refused') return refused(shared)
      if (kind === 'expired') return { kind }
      if (kind === 'wrong' && (await count(device, id))) return refused(shared)
      if (device.state === 'active') return confirmed(device, id, shared)
      if (kind === 'right' || kind === 'again') {
        shared.written ??= write(id, fields, device, shared).catch((thrown: unknown) => {
          shared.written = undefined // the next click tries again
          throw thrown
        })
        await shared.written
        if ((await find(id))?.state === 'error') return refused(shared)
      }
      if (clock.ticks() >= until) return { kind: 'pending' }
      await clock.sleep(POLL_MS, signal)
    }
  }

  return {
    click({ deviceId, deviceCode, confirmCode, signal }) {
      const fields = { device_id: deviceId, device_code: deviceCode, confirm_code: confirmCode }
      const id = confirmIdOf(fields)
      return clicks.during(id, (shared) => decide(id, fields, shared, signal))
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

interface Fields {
  readonly device_id: string
  readonly device_code: string
  readonly confirm_code: string
}

const confirmIdOf = (fields: Fields): string =>
  `confirm:${createHash('sha256').update(JSON.stringify(fields)).digest('hex').slice(0, 32)}`
