import type { Accounts } from '../../accounts/accounts.ts'
import type { Couch } from '../../couch/client.ts'
import type { Context } from '../../docstate/types.ts'
import type { StoredRecord } from '../channel-documents.ts'
import { endDatabase } from './end-database.ts'
import { endAgainLater } from './channel-end-due.ts'
import { notifyAccounts } from './notify-accounts.ts'

/**
 * channel_record closing → closed: ends all access, then deletes the database if the owner requested that. Otherwise
 * adds the database to the archived ones of the owner's account.
 */
export const closeChannel =
  ({ couch, accounts }: { readonly couch: Couch; readonly accounts: Accounts }) =>
  async (record: StoredRecord, ctx: Context) => {
    const { owner, database, close = 'archive' } = record
    await endDatabase(couch, database, close, { signal: ctx.signal })
    await endAgainLater(database, close, ctx)
    if (close === 'archive') await accounts.notify(owner, { archived: database }, { signal: ctx.signal })
    return { ...record, state: 'closed' as const }
  }

/** channel_record closed: notifies all members. */
export const notifyClosed =
  ({ accounts }: { readonly accounts: Accounts }) =>
  async (record: StoredRecord, ctx: Context): Promise<void> => {
    await notifyAccounts(accounts, record, { signal: ctx.signal })
  }
