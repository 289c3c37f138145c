import type { DbName } from '../../accounts/account-names.ts'
import type { Couch } from '../../couch/client.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { forget } from '../../docstate/handler-options.ts'
import type { Context } from '../../docstate/types.ts'
import type { ChannelEnd, Close } from '../channel-documents.ts'
import { endIdOf } from '../channel-names.ts'
import { endDatabase } from './end-database.ts'

/** Schedules a second, later `endDatabase` for a channel that has ended. */
export async function endAgainLater(database: DbName, close: Close, ctx: Pick<Context, 'put'>): Promise<void> {
  const end: ChannelEnd = { _id: endIdOf(database), type: 'channel_end', state: 'waiting', database, close }
  try {
    await ctx.put(end)
  } catch (thrown) {
    if (!isCouchError(thrown, 'conflict')) throw thrown // already scheduled
  }
}

/**
 * channel_end due: ends the database again, then deletes this document. A late worker may have made the database after
 * the end, and died before it could see that end.
 */
export const endAgain =
  ({ couch }: { readonly couch: Couch }) =>
  async (doc: ChannelEnd & StoredDoc & { readonly state: 'due' }, ctx: Context) => {
    await endDatabase(couch, doc.database, doc.close, { signal: ctx.signal })
    return forget(doc)
  }
