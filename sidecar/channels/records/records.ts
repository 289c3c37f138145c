import type { CallOptions, Database } from '../../couch/database.ts'
import { repeatOnConflict } from '../../couch/repeat-on-conflict.ts'
import { readInParts } from '../../couch/read-in-parts.ts'
import type { Resolver } from '../../docstate/conflicts/merge.ts'
import { isRecord, type ChannelRecord, type StoredRecord } from '../channel-documents.ts'
import { closeOf, isEnding } from '../ending.ts'

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

type Stated = ChannelRecord & { readonly state: string }

/**
 * Merges two records of one channel that a cluster accepted. The later life counts. The result is closing or closed if
 * either record of that life is; otherwise `ready` becomes `changed`. All members of both records are notified.
 */
export const mergeRecord: Resolver = ({ ours, theirs }) => {
  const [one, other] = [ours, theirs] as unknown as [Stated, Stated]
  const [later, earlier] = other.life > one.life ? [other, one] : [one, other]
  const gone = [...later.former, ...earlier.former, ...earlier.members].filter((who) => !later.members.includes(who))
  const left = [...(one.left ?? []), ...(other.left ?? [])]
  const ended = [...(one.ended ?? []), ...(other.ended ?? [])]
  return {
    ...later,
    ...(later.state === 'ready' && { state: 'changed' }),
    ...(one.life === other.life && endOf([one, other].filter(isEnding))),
    former: [...new Set(gone)],
    ...(left.length > 0 && { left: [...new Set(left)].sort() }),
    ...(ended.length > 0 && { ended: [...new Map(ended.map((end) => [end.database, end])).values()] }),
  }
}

/** State and `close` for the closing or closed records of one life. Empty without such a record. */
function endOf([first, second]: readonly Stated[]): Partial<Stated> {
  if (!first) return {}
  const closed = [first, second].find((record) => record?.state === 'closed')
  const close = closed?.close ?? (second ? closeOf(first, second) : first.close)
  return { state: closed ? 'closed' : 'closing', ...(close && { close }) }
}
