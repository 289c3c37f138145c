/** The handlers of registration on the test's database, with the real `_users`; stopped with the test. */
import pino from 'pino'
import { onTestFinished } from 'vitest'
import { controlMachines, type ControlMachines } from '../../ddocs/machines.ts'
import { createAccounts } from '../../sidecar/accounts/accounts.ts'
import { systemClock } from '../../sidecar/core/clock.ts'
import { createCouch } from '../../sidecar/couch/client.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import { userNameOf } from '../../sidecar/devices/device-names.ts'
import { registerDevices, type RegistrationOptions } from '../../sidecar/devices/register.ts'
import { createDeviceUsers } from '../../sidecar/devices/users.ts'
import type { Control } from '../../sidecar/docstate/control.ts'
import { createEvents } from '../../sidecar/events/channels.ts'
import { createMailer } from '../../sidecar/mail/mailer.ts'
import { loadTemplates } from '../../sidecar/mail/templates.ts'
import { startRig, type Rig } from '../docstate/rig.ts'
import { couchUrl, createTestCouch, uniqueName } from '../support/couchdb.ts'

export interface RegistrationRig {
  /** The worker's URL of CouchDB, such as a proxy. Default: the server of this run. */
  readonly url?: string
  readonly smtpUrl?: string
  readonly worker?: string
  readonly mailsPerOwner?: number
  /** For the delays between attempts. */
  readonly random?: () => number
}

/** One worker. */
export async function startRegistrationRig(database: Database, options: RegistrationRig = {}): Promise<Rig> {
  const {
    url = couchUrl(),
    smtpUrl = 'smtp://127.0.0.1:1',
    worker = 'rig',
    mailsPerOwner = 5,
    random = Math.random,
  } = options
  const couch = createTestCouch({ url })
  const log = pino({ level: 'silent' })
  const mailer = createMailer({
    ...{ smtpUrl, from: 'sidecar@example.org', events: createEvents({ log }), clock: systemClock, log },
  })
  onTestFinished(() => mailer.close())
  const registration: RegistrationOptions = {
    templates: loadTemplates(),
    clock: systemClock,
    publicUrl: 'http://localhost:5985',
    confirmExpiryMs: 3_600_000,
    mailsPerOwner,
    users: createDeviceUsers(couch.db('_users')),
    accounts: createAccounts(couch.db(database.name)),
  }
  const register = (control: Control) => registerDevices(control as unknown as Control<ControlMachines>, registration)
  return startRig(couch.db(database.name), register, { machines: controlMachines, mailer, worker, random })
}

/** A device as a client writes it; the test removes its user. */
export function newDevice(fields: Record<string, unknown> = {}) {
  const _id = uniqueName('device')
  onTestFinished(() => removeUser(_id))
  const owner = `${uniqueName('owner')}@example.com`
  return { _id, type: 'device', state: 'new', owner, device_code: '1234', ...fields }
}

/** A hash in CouchDB's format, of an unused password. */
export const credentials = {
  password_scheme: 'pbkdf2',
  pbkdf2_prf: 'sha256',
  salt: '00',
  derived_key: '0'.repeat(64),
  iterations: 1000,
}

export const userIdOf = (deviceId: string): string => `org.couchdb.user:${userNameOf(deviceId)}`

async function removeUser(deviceId: string): Promise<void> {
  const couch = createCouch({ url: couchUrl() })
  try {
    const user = await couch.db('_users').find(userIdOf(deviceId))
    if (user) await couch.db('_users').remove(user._id, user._rev)
  } finally {
    await couch.close()
  }
}
