import type { Accounts } from '../../accounts/accounts.ts'
import type { Couch } from '../../couch/client.ts'
import type { CallOptions, Database } from '../../couch/database.ts'
import { isCouchError } from '../../couch/errors.ts'
import { closeDatabase } from '../../deploy/make-database.ts'
import type { Context } from '../../docstate/types.ts'
import type { Close, StoredRecord } from '../documents.ts'
import { tellAll } from './tell-all.ts'

/**
 * channel_record closing → closed: first nobody has access any more, then the database goes, if that was asked; otherwise
 * its owner's account knows that there is one more.
 */
export const closeChannel =
  ({ couch, accounts }: { readonly couch: Couch; readonly accounts: Accounts }) =>
  async (record: StoredRecord, ctx: Context) => {
    const { owner, database, close = 'archive' } = record
    await endDatabase(couch.db(database), close, { signal: ctx.signal })
    if (close === 'archive') await accounts.tell(owner, { archived: database }, { signal: ctx.signal })
    return { ...record, state: 'closed' as const }
  }

/** channel_record closed: everybody is told. */
export const tellClosed =
  ({ accounts }: { readonly accounts: Accounts }) =>
  async (record: StoredRecord, ctx: Context): Promise<void> => {
    await tellAll(accounts, record, { signal: ctx.signal })
  }

/** Twice is fine, and so is a database that is not there. */
export async function endDatabase(database: Database, close: Close, options: CallOptions): Promise<void> {
  try {
    await closeDatabase(database, options)
  } catch (thrown) {
    if (isCouchError(thrown, 'not_found')) return
    throw thrown
  }
  if (close === 'delete') await database.drop(options)
}
