import { defineMachines } from './machine.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/** The machines of the control database. `docs/machines.md` shows them as diagrams, made from this table. */
export const controlMachines = defineMachines({
  device: {
    new: {
      mode: 'unsafe',
      create: 'client',
      next: { new: 'client', confirming: 'sidecar', confirmed: 'sidecar', error: 'sidecar', revoked: 'owner' },
    },
    confirming: {
      next: { confirmed: 'sidecar', error: 'sidecar', expired: 'sidecar', new: 'client', revoked: 'owner' },
      timeout: { afterMs: DAY_MS, next: 'expired' },
    },
    confirmed: { mode: 'safe', next: { active: 'sidecar', error: 'sidecar', revoked: 'owner' } },
    active: { next: { revoked: 'owner' } },
    revoked: { mode: 'safe' },
    expired: { next: { new: 'client', revoked: 'owner' } },
    error: { next: { new: 'client', confirmed: 'sidecar', revoked: 'owner' } },
  },
  confirm: {
    clicked: { mode: 'safe', create: 'client', next: { used: 'sidecar', error: 'sidecar' } },
    used: {},
    error: {},
  },
})

export type ControlMachines = typeof controlMachines
