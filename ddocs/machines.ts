import { defineMachines } from './machine.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const HOUR_MS = DAY_MS / 24
const QUARTER_MS = HOUR_MS / 4
const WEEK_MS = 7 * DAY_MS
const MONTH_MS = 30 * DAY_MS

/** The machines of the control database. `docs/machines.md` shows diagrams generated from this table. */
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
    active: { mode: 'safe', next: { revoked: 'owner', error: 'sidecar' } },
    revoked: { mode: 'safe' },
    expired: {
      next: { new: 'client', revoked: 'owner', forgotten: 'sidecar' },
      timeout: { afterMs: WEEK_MS, next: 'forgotten' },
    },
    error: {
      next: { new: 'client', confirmed: 'sidecar', revoked: 'owner', forgotten: 'sidecar' },
      timeout: { afterMs: WEEK_MS, next: 'forgotten' },
    },
    forgotten: { mode: 'safe' },
  },
  confirm: {
    clicked: { mode: 'safe', create: 'client', next: { used: 'sidecar', error: 'sidecar' } },
    used: { next: { forgotten: 'sidecar' }, timeout: { afterMs: WEEK_MS, next: 'forgotten' } },
    error: { next: { forgotten: 'sidecar' }, timeout: { afterMs: WEEK_MS, next: 'forgotten' } },
    forgotten: { mode: 'safe' },
  },
  mail_ledger: {
    counting: { create: 'sidecar', next: { over: 'sidecar' }, timeout: { afterMs: HOUR_MS, next: 'over' } },
    over: { mode: 'safe', next: { counting: 'sidecar' } },
  },
  guesses: {
    counting: { create: 'sidecar', next: { over: 'sidecar' }, timeout: { afterMs: DAY_MS, next: 'over' } },
    over: { mode: 'safe', next: { counting: 'sidecar' } },
  },
  account: {
    new: { mode: 'unsafe', create: 'sidecar', next: { changed: 'sidecar', error: 'sidecar' } },
    changed: { mode: 'safe', next: { ready: 'sidecar', error: 'sidecar' } },
    ready: { next: { changed: 'sidecar' } },
    error: { next: { changed: 'sidecar' } },
  },
  channel_record: {
    new: { mode: 'safe', create: 'sidecar', next: { changed: 'sidecar', closing: 'sidecar', error: 'sidecar' } },
    changed: { mode: 'safe', next: { ready: 'sidecar', closing: 'sidecar', error: 'sidecar' } },
    ready: { next: { changed: 'sidecar', closing: 'sidecar' } },
    closing: { mode: 'safe', next: { closed: 'sidecar', error: 'sidecar' } },
    closed: { mode: 'safe', next: { new: 'sidecar' } },
    error: { next: { new: 'sidecar', changed: 'sidecar', closing: 'sidecar' } },
  },
  channel_end: {
    waiting: { create: 'sidecar', next: { due: 'sidecar' }, timeout: { afterMs: QUARTER_MS, next: 'due' } },
    due: { mode: 'safe' },
  },
  invitation: {
    new: {
      mode: 'unsafe',
      create: 'sidecar',
      next: { sent: 'sidecar', waiting: 'sidecar', needless: 'sidecar', error: 'sidecar' },
    },
    waiting: { next: { new: 'sidecar' }, timeout: { afterMs: QUARTER_MS, next: 'new' } },
    sent: { next: { over: 'sidecar' }, timeout: { afterMs: MONTH_MS, next: 'over' } },
    over: { mode: 'safe', next: { sent: 'sidecar' } },
    needless: { next: { new: 'sidecar', forgotten: 'sidecar' }, timeout: { afterMs: WEEK_MS, next: 'forgotten' } },
    error: { next: { new: 'sidecar', forgotten: 'sidecar' }, timeout: { afterMs: WEEK_MS, next: 'forgotten' } },
    forgotten: { mode: 'safe', next: { new: 'sidecar' } },
  },
  canary: {
    sent: { mode: 'unsafe', create: 'sidecar', next: { arrived: 'sidecar', error: 'sidecar' } },
    arrived: { next: { over: 'sidecar' }, timeout: { afterMs: HOUR_MS, next: 'over' } },
    error: { next: { over: 'sidecar' }, timeout: { afterMs: HOUR_MS, next: 'over' } },
    over: { mode: 'safe' },
  },
})

export type ControlMachines = typeof controlMachines

/** The machines of each user's control database. */
export const userMachines = defineMachines({
  device: {
    active: { create: 'sidecar', next: { revoked: 'client' } },
    revoked: { mode: 'safe' },
  },
  channel: {
    new: {
      mode: 'safe',
      create: 'client',
      next: { new: 'client', closing: 'client', accepted: 'sidecar', ready: 'sidecar', error: 'sidecar' },
    },
    accepted: { next: { new: 'client', ready: 'sidecar', closed: 'sidecar' } },
    ready: { create: 'sidecar', next: { new: 'owner', closing: 'owner', closed: 'sidecar', removed: 'sidecar' } },
    closing: { mode: 'safe', next: { closed: 'sidecar', error: 'sidecar' } },
    closed: { next: { new: 'owner', ready: 'sidecar' } },
    removed: { next: { ready: 'sidecar' } },
    error: { next: { new: 'client', closing: 'client' } },
  },
  subscription: {
    new: { mode: 'safe', create: 'client', next: { active: 'sidecar', error: 'sidecar', ended: 'client' } },
    invite: { create: 'sidecar', next: { active: 'client', ended: 'client', left: 'client' } },
    active: { create: 'sidecar', next: { active: 'client', paused: 'client', ended: 'client', left: 'client' } },
    paused: { next: { paused: 'client', active: 'client', ended: 'client', left: 'client' } },
    ended: { next: { new: 'client', left: 'client', invite: 'sidecar', active: 'sidecar' } },
    left: { mode: 'safe', next: { new: 'client' } },
    error: { next: { new: 'client' } },
  },
})

export type UserMachines = typeof userMachines
