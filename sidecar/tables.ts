import type { Config } from './config.ts'
import type { Clock } from './core/clock.ts'
import type { Couch } from './couch/client.ts'
import { controlMachinesFor } from './devices/machines.ts'
import { registerDevices } from './devices/register.ts'
import { createDeviceUsers } from './devices/users.ts'
import type { DispatchTable } from './docstate/assess.ts'
import { createControl } from './docstate/control.ts'
import { joinHandlers, type LoadedHandlers } from './docstate/handlers.ts'
import type { Templates } from './mail/templates.ts'

/** What is handled where. */
export interface Tables {
  /** In the control database: registration, and the user's own handlers. */
  readonly control: DispatchTable
  /** In any other: the user's own. */
  readonly docstate: DispatchTable
}

export interface TablesOptions {
  readonly config: Pick<Config, 'confirmExpiryMs' | 'mailsPerOwner'>
  readonly handlers: LoadedHandlers
  readonly couch: Couch
  readonly templates: Templates
  readonly clock: Clock
  /** Base of the links in mails. */
  readonly publicUrl: string
}

export function createTables({ config, handlers, couch, templates, clock, publicUrl }: TablesOptions): Tables {
  const control = createControl(controlMachinesFor(config))
  const { confirmExpiryMs, mailsPerOwner } = config
  const users = createDeviceUsers(couch.db('_users'))
  registerDevices(control, { templates, clock, publicUrl, confirmExpiryMs, mailsPerOwner, users })
  return { control: joinHandlers([handlers, control]), docstate: handlers }
}
