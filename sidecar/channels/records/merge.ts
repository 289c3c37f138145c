import type { Resolver } from '../../docstate/conflicts/merge.ts'
import type { ChannelRecord } from '../documents.ts'

/**
 * Two records of one channel that a cluster has taken both: of the later life, looked at again, and everybody is told
 * who was a member in either.
 */
export const mergeRecord: Resolver = ({ ours, theirs }) => {
  const [one, other] = [ours, theirs] as unknown as [ChannelRecord & { state: string }, ChannelRecord]
  const [later, earlier] = other.life > one.life ? [other, one] : [one, other]
  const gone = [...later.former, ...earlier.former, ...earlier.members].filter((who) => !later.members.includes(who))
  const ended = [...(one.ended ?? []), ...(other.ended ?? [])]
  return {
    ...later,
    state: later.state === 'ready' ? 'changed' : later.state,
    former: [...new Set(gone)],
    ...(ended.length > 0 && { ended: [...new Map(ended.map((end) => [end.database, end])).values()] }),
  }
}
