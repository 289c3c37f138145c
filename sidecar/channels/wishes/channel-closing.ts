import { quote } from '../../../ddocs/lib/document.ts'
import type { Accounts } from '../../accounts/accounts.ts'
import { Reject } from '../../core/errors.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import type { Context } from '../../docstate/types.ts'
import { ownerOf } from './channel-new.ts'
import type { Channel } from '../documents.ts'
import { recordIdOf } from '../names.ts'
import type { Records } from '../records/records.ts'
import { channelFaults } from '../shape.ts'

export interface ClosingOptions {
  readonly accounts: Accounts
  readonly records: Records
}

/**
 * channel closing (in a user's database): its record is told. Never by accident: only the document of the channel as it is
 * now, of a channel that is there, and with a word for what becomes of the database.
 */
export const takeClosing =
  ({ accounts, records }: ClosingOptions) =>
  async (doc: Channel & StoredDoc, ctx: Context): Promise<void> => {
    const faults = channelFaults(doc)
    const { close } = doc
    if (close !== 'archive' && close !== 'delete')
      faults.push(`close: expected "archive" or "delete", got ${quote(close)}`)
    if (faults.length > 0) throw new Reject('bad_close', faults.join('; '))
    const account = await ownerOf(doc, ctx, accounts)
    const id = recordIdOf(account.user_id!, doc.name)
    await records.write(
      id,
      async (record) => {
        if ((await ctx.find(doc._id))?._rev !== doc._rev) return undefined
        if (record?.document !== doc._id || record.database !== doc.database) {
          throw new Reject('no_channel', 'this document is of no channel that could be closed')
        }
        return record.state === 'closed' ? record : { ...record, state: 'closing', close: close! }
      },
      { signal: ctx.signal },
    )
  }
