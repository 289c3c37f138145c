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
  /** What each channel gets. */
  readonly templates: readonly Template[]
}

/** channel_record new → changed: the database is there, closed to all but its members-to-be. Or → closing: called off. */
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
      if (end) await endDatabase(couch, name, end, options) // it was closed while this worker was late
    }
    const request = await couch.db(record.user_database).find(record.document, {}, options)
    if (!isCalledOff(request, record.life)) return { ...record, state: 'changed' as const }
    const close: Close = request?.close === 'delete' ? 'delete' : 'archive'
    return { ...record, state: 'closing' as const, close }
  }

/** What has become of a database meanwhile. */
function endOf(record: StoredDoc | undefined, database: string): Close | undefined {
  if (!isRecord(record)) return undefined
  const isClosed = record.state === 'closing' || record.state === 'closed'
  if (record.database === database) return isClosed ? record.close : undefined
  return record.ended?.find((ended) => ended.database === database)?.close
}

/** What its members read of it. */
async function describe(couch: Couch, { name, owner, database }: ChannelRecord, options: CallOptions): Promise<void> {
  const described = couch.db(database)
  const there = await described.find('description', {}, options)
  if (there?.name === name && there.owner === owner) return
  const doc = { ...there, _id: 'description', type: 'description', name, owner }
  try {
    await described.put(doc, options)
  } catch (thrown) {
    if (!isCouchError(thrown, 'conflict')) throw thrown // another worker has written the same
  }
}
