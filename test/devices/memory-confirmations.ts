import type { Click, ClickOutcome, Confirmations, Followed } from '../../sidecar/devices/confirmations.ts'

type Codes = Omit<Click, 'signal'>

export interface MemoryConfirmations extends Confirmations {
  /** The clicks so far. */
  readonly clicks: Codes[]
  /** Returned with the confirmation. */
  credentials: { user?: string; password?: string }
  /** The result of the next click, or the error it throws, in place of the real result. */
  next: ClickOutcome | Error | undefined
  /** The state of the device's link; any other link is unknown. */
  followed: Followed | Error
}

/** Confirmations of one device, in memory: valid once for the three right codes. */
export function memoryConfirmations(right: Codes): MemoryConfirmations {
  let used = false
  const memory: MemoryConfirmations = {
    clicks: [],
    credentials: {},
    next: undefined,
    followed: { kind: 'unknown' },
    follow({ deviceId, confirmCode }) {
      const isRight = deviceId === right.deviceId && confirmCode === right.confirmCode
      if (memory.followed instanceof Error) return Promise.reject(memory.followed)
      return Promise.resolve(isRight ? memory.followed : { kind: 'unknown' })
    },
    click({ deviceId, confirmCode, deviceCode }) {
      const given = { deviceId, confirmCode, deviceCode }
      memory.clicks.push(given)
      const { next } = memory
      memory.next = undefined
      if (next instanceof Error) return Promise.reject(next)
      if (next) return Promise.resolve(next)
      if (used || JSON.stringify(given) !== JSON.stringify(right)) return Promise.resolve({ kind: 'refused' })
      used = true
      return Promise.resolve({ kind: 'confirmed', ...memory.credentials })
    },
  }
  return memory
}
