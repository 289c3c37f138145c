import type { DbName } from '../../accounts/account-names.ts'
import type { Couch } from '../../couch/client.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { forget } from '../../docstate/handler-options.ts'
import type { Context } from '../../docstate/types.ts'
import type { ChannelEnd, Close } from '../channel-documents.ts'
import { endIdOf } from '../channel-names.ts'
import { endDatabase } from './end-database.ts'

/** Has the database of a channel that has ended looked at once more, later. */
export async function endAgainLater(database: DbName, close: Close, ctx: Pick<Context, 'put'>): Promise<void> {
  const end: ChannelEnd = { _id: endIdOf(database), type: 'channel_end', state: 'waiting', database, close }
  try {
    await ctx.put(end)
  } catch (thrown) {
    if (!isCouchError(thrown, 'conflict')) throw thrown // it is to be looked at already
  }
}

/**
 * channel_end due, and deleted with that: a worker that was late, and has died before it could see that the channel had ended, may have made
 * its database after that.
 */
export const endAgain =
  ({ couch }: { readonly couch: Couch }) =>
  async (doc: ChannelEnd & StoredDoc & { readonly state: 'due' }, ctx: Context) => {
    await endDatabase(couch, doc.database, doc.close, { signal: ctx.signal })
    return forget(doc)
  }
