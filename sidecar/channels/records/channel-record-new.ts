import type { Couch } from '../../couch/client.ts'
import type { CallOptions } from '../../couch/database.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import type { Template } from '../../deploy/compiler.ts'
import { makeDatabase, type MakeOptions } from '../../deploy/make-database.ts'
import type { Context } from '../../docstate/types.ts'
import { isCalledOff } from '../ending.ts'
import { endDatabase } from './end-database.ts'
import { isRecord, type ChannelRecord, type Close, type StoredRecord } from '../channel-documents.ts'

export interface MakingOptions extends MakeOptions {
  /** Design documents that each channel gets. */
  readonly templates: readonly Template[]
}

/** channel_record new → changed: makes the database, open only to the channel's role. → closing: it was called off. */
export const makeChannel =
  ({ couch, templates, ...making }: MakingOptions) =>
  async (record: StoredRecord, ctx: Context) => {
    const options = { signal: ctx.signal }
    const { database: name, role } = record
    const wanted = { name, role, templates }
    try {
      await makeDatabase({ couch, ...making }, wanted, options)
      await describe(couch, record, options)
    } finally {
      const end = endOf(await ctx.find(record._id), name)
      if (end) await endDatabase(couch, name, end, options) // the channel was closed while this worker was late
    }
    const request = await couch.db(record.user_database).find(record.document, {}, options)
    if (!isCalledOff(request, record.life)) return { ...record, state: 'changed' as const }
    const close: Close = request?.close === 'delete' ? 'delete' : 'archive'
    return { ...record, state: 'closing' as const, close }
  }

/** How a database was closed meanwhile; undefined if it was not. */
function endOf(record: StoredDoc | undefined, database: string): Close | undefined {
  if (!isRecord(record)) return undefined
  const isClosed = record.state === 'closing' || record.state === 'closed'
  if (record.database === database) return isClosed ? record.close : undefined
  return record.ended?.find((ended) => ended.database === database)?.close
}

/** Writes the channel's description, which its members read, into its database. */
async function describe(couch: Couch, { name, owner, database }: ChannelRecord, options: CallOptions): Promise<void> {
  const described = couch.db(database)
  const current = await described.find('description', {}, options)
  if (current?.name === name && current.owner === owner) return
  const doc = { ...current, _id: 'description', type: 'description', name, owner }
  try {
    await described.put(doc, options)
  } catch (thrown) {
    if (!isCouchError(thrown, 'conflict')) throw thrown // another worker wrote the same description
  }
}
