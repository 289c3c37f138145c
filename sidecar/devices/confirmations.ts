import { createHash } from 'node:crypto'
import type { Clock } from '../core/clock.ts'
import type { Database } from '../couch/database.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { isCouchError } from '../couch/errors.ts'
import type { ClickOutcome, Confirmations } from '../http/confirmations.ts'
import { judge } from './confirm-clicked.ts'
import { findDevice, hashedPassword, type Device } from './documents.ts'
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
 * it. Its id follows from what was typed in, so that sending the form twice is one document. Nothing is written for a
 * link that is not good: strangers cannot fill the database.
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

  /** Watches what becomes of the confirm document and its device. */
  async function outcomeOf(id: string, deviceId: string, shared: SharedClick, find: Find, signal: AbortSignal) {
    const until = clock.ticks() + patienceMs
    while (clock.ticks() < until) {
      await clock.sleep(POLL_MS, signal)
      const [confirm, device] = [await find(id), await findDevice(deviceId, find)]
      if (confirm?.state === 'error' || device?.state === 'error') return refused(shared)
      if (device?.state === 'active') return confirmed(device, id, shared)
    }
    return { kind: 'pending' } as const
  }

  return {
    click({ deviceId, confirmCode, deviceCode, signal }) {
      const find: Find = (id) => database.find(id, {}, { signal })
      const fields = { device_id: deviceId, device_code: deviceCode, confirm_code: confirmCode }
      const id = confirmIdOf(fields)
      return clicks.during(id, async (shared): Promise<ClickOutcome> => {
        const device = await findDevice(deviceId, find)
        const verdict = judge(device, deviceCode, confirmCode, clock.now())
        if (!device || verdict.kind === 'refused') return { kind: 'refused' }
        if (verdict.kind === 'expired') return { kind: 'expired' }
        if (verdict.kind === 'again' && device.state === 'active') return confirmed(device, id, shared)

        shared.written ??= write(id, fields, device, shared).catch((thrown: unknown) => {
          shared.written = undefined // the next click tries again
          throw thrown
        })
        await shared.written
        return outcomeOf(id, deviceId, shared, find, signal)
      })
    },
  }
}

type Find = (id: string) => Promise<StoredDoc | undefined>

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
