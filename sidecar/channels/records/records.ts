import type { CallOptions, Database } from '../../couch/database.ts'
import { repeatOnConflict } from '../../couch/repeat-on-conflict.ts'
import { readInParts } from '../../couch/read-in-parts.ts'
import { isRecord, type ChannelRecord, type StoredRecord } from '../channel-documents.ts'

/** The records of channels, in the control database. */
export interface Records {
  find(id: string, options: CallOptions): Promise<StoredRecord | undefined>
  /** Records with these ids; missing ones are left out. */
  among(ids: readonly string[], options: CallOptions): Promise<StoredRecord[]>
  /**
   * Writes the record that `next` makes from the current one; nothing if `next` returns undefined. After a conflict,
   * `next` runs again. The written state begins a new entry.
   */
  write(
    id: string,
    next: (record: StoredRecord | undefined) => Promise<ChannelRecord | undefined>,
    options: CallOptions,
  ): Promise<void>
}

const TRIES = 50

export function createRecords(control: Database): Records {
  async function find(id: string, options: CallOptions) {
    const doc = await control.find(id, {}, options)
    return isRecord(doc) ? doc : undefined
  }

  return {
    find,
    among: async (ids, options) => (await readInParts(control, ids, options)).filter(isRecord),
    async write(id, next, options) {
      await repeatOnConflict(TRIES, async () => {
        const current = await find(id, options)
        const made = await next(current)
        if (!made) return
        const { docstate: _entry, error: _error, ...record } = made
        await control.put({ ...record, ...(current && { _rev: current._rev }) }, options)
      })
    },
  }
}
