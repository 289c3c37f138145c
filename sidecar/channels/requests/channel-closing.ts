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
 * channel closing (in a user's database): sets the record to `closing`. To prevent accidents, the document must be of
 * the current life, and must have `close`. A channel without a record becomes `closed` at once: it was refused, or is
 * called off before any device saw it.
 */
export const acceptClosing =
  ({ accounts, records }: ClosingOptions) =>
  async (doc: Channel & StoredDoc, ctx: Context) => {
    const options = { signal: ctx.signal }
    const account = await accounts.ofDatabase(ctx.database, options)
    const known = account ? await records.among(account.channels, options) : []
    const own = known.find((record) => isOf(record, doc) && record.owner === account!.address)
    // `owner_role`: the owner's devices may make the channel again.
    if (!own) return { ...closed(doc), ...(account && { owner_role: account.owner_role }) }
    const { close } = doc
    if (close !== 'archive' && close !== 'delete')
      throw new Reject('bad_close', `close: expected "archive" or "delete", got ${quote(close)}`)

    // Saved before the record: `database` ties the document to the end of that life.
    const saved = isOfFirst(own.life, doc) ? await ctx.save({ ...doc, database: own.database }) : doc

    async function next(record: StoredRecord | undefined) {
      if ((await ctx.find(doc._id))?._rev !== saved._rev) return undefined
      if (!record || record.database !== saved.database) {
        throw new Reject(
          'no_channel',
          'the channel was created again: write it as "new", and close it when it is ready',
        )
      }
      return record.state === 'closed' ? record : { ...record, state: 'closing' as const, close: close! }
    }

    await records.write(own._id, next, options)
    return undefined
  }

/** The document in `closed`. A worker that is making the channel sees this state (`isCalledOff`). */
function closed({ error: _error, ...doc }: Channel & StoredDoc & { error?: unknown }) {
  return { ...doc, state: 'closed' as const }
}

const isOf = ({ document, state }: StoredRecord, { _id }: Channel): boolean => document === _id && state !== 'closed'
