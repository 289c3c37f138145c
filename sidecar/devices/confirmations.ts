import { createHash } from 'node:crypto'
import type { Clock } from '../core/clock.ts'
import type { Database } from '../couch/database.ts'
import { isCouchError } from '../couch/errors.ts'
import type { ClickOutcome, Confirmations } from '../http/confirmations.ts'
import { judge } from './confirm-clicked.ts'
import { findDevice, hashedPassword, type Device } from './documents.ts'
import type { Hashing } from './passwords.ts'
import { createUnshownPasswords, type MadePassword } from './unshown-passwords.ts'

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
 * it. Its id follows from what was typed in, so that sending the form twice is one document. Nothing is written for a
 * link that is not good: strangers cannot fill the database.
 */
export function createConfirmations(options: ConfirmationsOptions): Confirmations {
  const { database, clock, hashing, patienceMs = 8000 } = options
  const passwords = createUnshownPasswords(hashing)

  /** Resolves with the password made for a device that brought none; undefined where another one counts. */
  async function write(_id: string, fields: Fields, device: Device, signal: AbortSignal) {
    const known = passwords.find(_id)
    const made = await (known ?? (hashedPassword(device.credentials) ? undefined : passwords.make(_id)))
    try {
      const credentials = made && { credentials: made.hashed }
      await database.put({ _id, type: 'confirm', state: 'clicked', ...fields, ...credentials }, { signal })
      return made
    } catch (thrown) {
      if (!isCouchError(thrown, 'conflict')) throw thrown
      if (known) return made // sent before, by us
      passwords.forget(_id) // by another worker: that password counts
      return undefined
    }
  }

  /** With the password, if this very click brought it. */
  function confirmed({ user, confirmation }: Device, id: string, made: MadePassword | undefined): ClickOutcome {
    passwords.forget(id)
    const password = confirmation?.confirmed_by === id ? made?.password : undefined
    return { kind: 'confirmed', user, password }
  }

  return {
    async click({ deviceId, confirmCode, deviceCode, signal }) {
      const find = (id: string) => database.find(id, {}, { signal })
      const device = await findDevice(deviceId, find)
      const verdict = judge(device, deviceCode, confirmCode, clock.now())
      if (!device || verdict.kind === 'refused') return { kind: 'refused' }
      if (verdict.kind === 'expired') return { kind: 'expired' }

      const fields = { device_id: deviceId, device_code: deviceCode, confirm_code: confirmCode }
      const id = confirmIdOf(fields)
      if (verdict.kind === 'again' && device.state === 'active') return confirmed(device, id, await passwords.find(id))
      const made = await write(id, fields, device, signal)
      const until = clock.ticks() + patienceMs
      while (clock.ticks() < until) {
        await clock.sleep(POLL_MS, signal)
        const [confirm, now] = [await find(id), await findDevice(deviceId, find)]
        if (confirm?.state === 'error' || now?.state === 'error') {
          passwords.forget(id)
          return { kind: 'refused' }
        }
        if (now?.state === 'active') return confirmed(now, id, made)
      }
      return { kind: 'pending' }
    },
  }
}

interface Fields {
  readonly device_id: string
  readonly device_code: string
  readonly confirm_code: string
}

const confirmIdOf = (fields: Fields): string =>
  `confirm:${createHash('sha256').update(JSON.stringify(fields)).digest('hex').slice(0, 32)}`
