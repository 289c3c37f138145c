import type { Resolver } from '../../docstate/conflicts/merge.ts'
import type { ChannelRecord } from '../channel-documents.ts'
import { closeOf, isEnding } from '../ending.ts'

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
