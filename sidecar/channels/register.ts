import type { ControlMachines, UserMachines } from '../../ddocs/machines.ts'
import type { Machines } from '../../ddocs/machine.ts'
import { createAccounts, mergeAccount, type Accounts } from '../accounts/accounts.ts'
import { giveUserId } from '../accounts/account-new.ts'
import type { Clock } from '../core/clock.ts'
import { ddocsFolder } from '../deploy/compile.ts'
import { makeDatabase, type MakeOptions } from '../deploy/make-database.ts'
import type { Control } from '../docstate/control.ts'
import { forget } from '../docstate/handler-options.ts'
import { UNTIL_DONE } from '../docstate/handler-options.ts'
import type { Templates } from '../mail/templates.ts'
import { reconcile } from './reconcile/account-changed.ts'
import { closeChannel, notifyClosed } from './records/channel-record-closing.ts'
import { keepInvitation, mailInvitation } from './records/invitation-new.ts'
import { endAgain } from './records/channel-end-due.ts'
import { makeChannel } from './records/channel-record-new.ts'
import { notifyMembers } from './records/channel-record-changed.ts'
import { createNewcomers } from './records/newcomers.ts'
import { createRecords, mergeRecord } from './records/records.ts'
import { acceptClosing } from './requests/channel-closing.ts'
import { acceptChannel } from './requests/channel-new.ts'
import { revokeDevice } from './requests/device-revoked.ts'
import { mergeSubscription } from './requests/subscription-new.ts'
import { mergeChannel } from './requests/merge-channel.ts'
import { leave } from './requests/subscription-left.ts'
import { activate } from './requests/subscription-new.ts'

export interface ChannelsOptions extends MakeOptions {
  readonly controlDb: string
  readonly templates: Templates
  readonly clock: Clock
  /** Folders of design documents that each channel gets in addition to the sidecar's own. */
  readonly channelDdocs: readonly string[]
  readonly channelsPerOwner: number
  readonly invitesPerOwner: number
  /** URL at which devices reach CouchDB, without a trailing slash. */
  readonly syncUrl: string
  /** State machines of a user's control database. */
  readonly machines: Machines
}

export interface Channels {
  readonly accounts: Accounts
  /** Registers the handlers of the control database. */
  registerControl(control: Control<ControlMachines>): void
  /** Registers the handlers of a user's control database. */
  registerUser(control: Control<UserMachines>): void
}

/** Creates the handlers of accounts and channels: for users' requests, for the records, and for reconciling. */
export function createChannels(options: ChannelsOptions): Channels {
  const {
    couch,
    compiler,
    shards,
    controlDb,
    templates,
    clock,
    channelDdocs,
    channelsPerOwner,
    invitesPerOwner,
    syncUrl,
    machines,
  } = options
  const database = couch.db(controlDb)
  const accounts = createAccounts(database)
  const records = createRecords(database)
  const newcomers = createNewcomers({ accounts, records, control: database, clock })
  const make = { couch, compiler, shards }
  const making = { ...make, templates: [ddocsFolder('channel'), ...channelDdocs].map((folder) => ({ folder })) }
  const userTemplates = [{ folder: ddocsFolder('user'), machines }]

  return {
    accounts,
    registerControl(control) {
      control.unsafe('account', 'new', giveUserId({ controlDb }), { ...UNTIL_DONE, onLost: 'retry' })
      const makeUserDatabase = (name: string, role: string, signal: AbortSignal) =>
        makeDatabase(make, { name, role, templates: userTemplates }, { signal })
      control.safe('account', 'changed', reconcile({ couch, control: database, makeUserDatabase, syncUrl }), UNTIL_DONE)
      control.safe('channel_record', 'new', makeChannel(making), UNTIL_DONE)
      control.safe('channel_record', 'changed', notifyMembers({ couch, accounts, newcomers }), UNTIL_DONE)
      control.safe('channel_record', 'closing', closeChannel({ couch, accounts }), UNTIL_DONE)
      control.safe('channel_record', 'closed', notifyClosed({ accounts }), UNTIL_DONE)
      control.safe('channel_end', 'due', endAgain({ couch }), UNTIL_DONE)
      const inviting = { accounts, templates, clock, invitesPerOwner }
      control.unsafe('invitation', 'new', mailInvitation(inviting))
      control.safe('invitation', 'over', keepInvitation({ accounts }), UNTIL_DONE)
      control.safe('invitation', 'forgotten', forget, UNTIL_DONE)
      control.resolve('account', mergeAccount)
      control.resolve('channel_record', mergeRecord)
    },
    registerUser(control) {
      control.safe(
        'channel',
        'new',
        acceptChannel({ couch, accounts, records, newcomers, channelsPerOwner }),
        UNTIL_DONE,
      )
      control.safe('channel', 'closing', acceptClosing({ accounts, records }), UNTIL_DONE)
      control.safe('subscription', 'new', activate({ accounts, records }))
      control.safe('subscription', 'left', leave({ accounts, records }), UNTIL_DONE)
      control.safe('device', 'revoked', revokeDevice({ control: database, accounts }), UNTIL_DONE)
      control.resolve('channel', mergeChannel(clock))
      control.resolve('subscription', mergeSubscription)
    },
  }
}
