import { createHash } from 'node:crypto'
import type { Clock } from '../core/clock.ts'
import type { Database } from '../couch/database.ts'
import { isCouchError } from '../couch/errors.ts'
import type { Confirmations } from '../http/confirmations.ts'
import { deviceIn, judge } from './confirm-clicked.ts'
import { hashedPassword, type Device } from './documents.ts'
import { hashPassword, newPassword, type Hashing } from './passwords.ts'

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

  async function findDevice(id: string, signal: AbortSignal): Promise<Device | undefined> {
    return id.startsWith('_') ? undefined : deviceIn(await database.find(id, {}, { signal }))
  }

  /** The password made for a device that brought none; undefined where another one counts. */
  async function write(_id: string, fields: Fields, device: Device, signal: AbortSignal): Promise<string | undefined> {
    const password = hashedPassword(device.credentials) ? undefined : newPassword()
    const credentials = password === undefined ? {} : { credentials: await hashPassword(password, hashing) }
    try {
      await database.put({ _id, type: 'confirm', state: 'clicked', ...fields, ...credentials }, { signal })
      return password
    } catch (thrown) {
      if (isCouchError(thrown, 'conflict')) return undefined // sent before; that one counts
      throw thrown
    }
  }

  return {
    async click({ deviceId, confirmCode, deviceCode, signal }) {
      const device = await findDevice(deviceId, signal)
      const verdict = judge(device, deviceCode, confirmCode, clock.now())
      if (!device || verdict.kind === 'refused') return { kind: 'refused' }
      if (verdict.kind === 'expired') return { kind: 'expired' }
      if (verdict.kind === 'again' && device.state === 'active') return confirmed(device)

      const fields = { device_id: deviceId, device_code: deviceCode, confirm_code: confirmCode }
      const id = confirmIdOf(fields)
      const password = await write(id, fields, device, signal)
      const until = clock.ticks() + patienceMs
      while (clock.ticks() < until) {
        await clock.sleep(POLL_MS, signal)
        const confirm = await database.find(id, {}, { signal })
        const now = await findDevice(deviceId, signal)
        if (confirm?.state === 'error' || now?.state === 'error') return { kind: 'refused' }
        if (now?.state === 'active') {
          return confirmed(now, now.confirmation?.confirmed_by === id ? password : undefined)
        }
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

const confirmed = ({ user }: Device, password?: string) => ({
  kind: 'confirmed' as const,
  ...(user !== undefined && { user }),
  ...(user !== undefined && password !== undefined && { password }),
})
