import { quote } from '../../../ddocs/lib/document.ts'
import type { Accounts } from '../../accounts/accounts.ts'
import { Reject } from '../../core/errors.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import type { Context } from '../../docstate/types.ts'
import type { Channel, StoredRecord } from '../channel-documents.ts'
import { isOfFirst } from '../ending.ts'
import type { Records } from '../records/records.ts'

export interface ClosingOptions {
  readonly accounts: Accounts
  readonly records: Records
}

/**
 * channel closing (in a user's database): its record is told. Never by accident: only the document of the channel as it is
 * now, and with a word for what becomes of the database. One that was never made is closed with that: it was refused,
 * or is called off before any device saw it.
 */
export const acceptClosing =
  ({ accounts, records }: ClosingOptions) =>
  async (doc: Channel & StoredDoc, ctx: Context) => {
    const options = { signal: ctx.signal }
    const account = await accounts.ofDatabase(ctx.database, options)
    const known = account ? await records.among(account.channels, options) : []
    const own = known.find((record) => isOf(record, doc) && record.owner === account!.address)
    if (!own) return { ...closed(doc), ...(account && { owner_role: account.owner_role }) } // who may make it anew
    const { close } = doc
    if (close !== 'archive' && close !== 'delete')
      throw new Reject('bad_close', `close: expected "archive" or "delete", got ${quote(close)}`)

    // Before the record, whose end it then knows to be its own.
    const told = isOfFirst(own.life, doc) ? await ctx.save({ ...doc, database: own.database }) : doc

    async function next(record: StoredRecord | undefined) {
      if ((await ctx.find(doc._id))?._rev !== told._rev) return undefined
      if (!record || record.database !== told.database) {
        throw new Reject(
          'no_channel',
          'the channel was made again since: write it as "new", and close it when it is ready',
        )
      }
      return record.state === 'closed' ? record : { ...record, state: 'closing' as const, close: close! }
    }

    await records.write(own._id, next, options)
    return undefined
  }

/** If it is being made just now, its maker sees this. */
function closed({ error: _error, ...doc }: Channel & StoredDoc & { error?: unknown }) {
  return { ...doc, state: 'closed' as const }
}

const isOf = ({ document, state }: StoredRecord, { _id }: Channel): boolean => document === _id && state !== 'closed'
