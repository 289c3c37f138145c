import type { Machines } from '../../ddocs/machine.ts'
import { userMachines } from '../../ddocs/machines.ts'
import { newUserId, userDatabaseOf, userDatabasesOf } from '../accounts/account-names.ts'
import { registerCanary } from '../canary/canary.ts'
import { createChannels } from '../channels/register.ts'
import type { Config } from '../config.ts'
import { isAmong } from '../core/glob.ts'
import type { Clock } from '../core/clock.ts'
import type { Couch } from '../couch/client.ts'
import type { Job } from './jobs.ts'
import type { Compiler } from '../deploy/compiler.ts'
import { controlMachinesFor } from '../devices/register.ts'
import { deletionTable } from '../deletions/deletion-table.ts'
import { registerDevices } from '../devices/register.ts'
import { scheduleTable } from '../schedules/schedule-table.ts'
import { createDeviceUsers } from '../devices/users.ts'
import { createControl } from '../docstate/control.ts'
import type { TypeAndState } from '../workers/partitioning.ts'
import { joinHandlers, type LoadedHandlers } from '../docstate/handlers.ts'
import type { Templates } from '../mail/templates.ts'

/** Handlers by database. The user's handlers and machines apply only in the databases of the settings. */
export interface HandlerTables {
  readonly of: (this: void, database: string) => Job & { readonly table: LoadedHandlers }
  /** Maximum workers that may run a handler in a database; without `pair`, the lowest maximum of its handlers. */
  readonly most: (this: void, database: string, pair?: TypeAndState) => number
  /** Handlers in the control database. */
  readonly control: LoadedHandlers
  /** Handlers in the control databases of users. */
  readonly user: LoadedHandlers
  /** Handlers in all other databases. */
  readonly docstate: LoadedHandlers
}

export interface HandlerTablesOptions {
  readonly config: Omit<Config, 'couchdbUrl' | 'smtpUrl'>
  readonly handlers: LoadedHandlers
  readonly couch: Couch
  readonly compiler: Compiler
  readonly templates: Templates
  readonly clock: Clock
  /** Base URL of the links in mails. */
  readonly publicUrl: string
  /** URL at which devices reach CouchDB. */
  readonly syncUrl: string
}

export function createHandlerTables(options: HandlerTablesOptions): HandlerTables {
  const { config, handlers, couch, compiler, templates, clock, publicUrl, syncUrl } = options
  const { controlDb, databases, confirmExpiryMs, mailsPerOwner } = config
  const ownIn = (database: string) => (isAmong(database, databases) ? [handlers] : [])
  const ofUsers = ownIn(userDatabaseOf(newUserId(controlDb)))
  const machines = Object.assign({}, ...ofUsers.map((one) => one.machines), userMachines) as Machines
  const channels = createChannels({ ...config, couch, compiler, templates, clock, syncUrl, machines })
  const control = createControl(controlMachinesFor(config))
  const users = createDeviceUsers(couch.db('_users'))
  registerDevices(control, {
    templates,
    clock,
    publicUrl,
    confirmExpiryMs,
    mailsPerOwner,
    users,
    accounts: channels.accounts,
  })
  channels.registerControl(control)
  registerCanary(control, config.name)
  const user = createControl(userMachines)
  channels.registerUser(user)

  const jobs = {
    control: {
      kind: 'control',
      table: joinHandlers([
        ...ownIn(controlDb),
        control,
        scheduleTable(handlers.schedules, clock),
        deletionTable(handlers.deletions),
      ]),
    },
    user: { kind: 'user', table: joinHandlers([...ofUsers, user]) },
    docstate: { kind: 'docstate', table: handlers },
  } as const
  const theirs = [userDatabasesOf(controlDb)]
  const of: HandlerTables['of'] = (database) => {
    if (database === controlDb) return jobs.control
    return isAmong(database, theirs) ? jobs.user : jobs.docstate
  }
  return {
    of,
    most(database, pair) {
      const all = of(database).table.registrations
      const selected = pair ? all.filter(({ type, state }) => type === pair.type && state === pair.state) : all
      return Math.min(...selected.map(({ options }) => options.globalConcurrency ?? Infinity))
    },
    ...{ control: jobs.control.table, user: jobs.user.table, docstate: handlers },
  }
}
