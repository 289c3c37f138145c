import type { StoredAccount } from '../../accounts/account-documents.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { mailboxHashOf } from '../../accounts/owner.ts'
import { isMember, isOpen, type StoredRecord } from '../channel-documents.ts'
import { subscriptionIdOf } from '../channel-names.ts'

/** Which invitations to other users' channels are hidden, forgotten or answered. */
export interface Invited {
  /** Ids of records whose invitations are hidden, because the list has no room now. */
  readonly hidden: ReadonlySet<string>
  /** Ids of hidden records that are forgotten. */
  readonly forgotten: ReadonlySet<string>
  /** Number of invitations that the user has answered, without channels that the user has left. */
  readonly answered: number
}

/** Maximum number of unanswered invitations that are shown: of one unknown owner, and in total. */
const [MOST_OF_ONE, MOST_SHOWN] = [5, 50]
/** Maximum number of hidden invitations that are remembered, and shown when the list has room. */
const MOST_KEPT = 500

/** Whether some invitations may be hidden. If not, no subscription has to be read. */
export const mayBeTooMany = (records: readonly StoredRecord[], account: StoredAccount): boolean =>
  ofOthers(records, account).length > MOST_OF_ONE

/**
 * Selects the invitations to show: strangers may invite a user without limit. Invitations of owners who share a channel
 * with the user come first, then the latest ones. Pure.
 *
 * @param current subscriptions in the user's database, by id
 */
export function invitedTo(
  records: readonly StoredRecord[],
  account: StoredAccount,
  current: ReadonlyMap<string, StoredDoc>,
): Invited {
  const others = ofOthers(records, account)
  const answered = others.filter(({ _id }) => isAnswered(current.get(subscriptionIdOf(_id))))
  const own = records.filter((record) => isOpen(record) && record.owner === account.address)
  const known = new Set([...answered.map(({ owner }) => owner), ...own.flatMap(({ members }) => members)])
  const rankOf = ({ owner }: StoredRecord) => (known.has(owner) ? 0 : 1)
  const waiting = others
    .filter((record) => !answered.includes(record))
    .reverse()
    .sort((a, b) => rankOf(a) - rankOf(b))
  const shown = new Map<string, number>()
  const hidden: string[] = []
  let count = 0
  for (const { _id, owner } of waiting) {
    const mailbox = mailboxHashOf(owner)
    const before = shown.get(mailbox) ?? 0
    if (count >= MOST_SHOWN || (!known.has(owner) && before >= MOST_OF_ONE)) hidden.push(_id)
    else {
      count += 1
      shown.set(mailbox, before + 1)
    }
  }
  return { hidden: new Set(hidden), forgotten: new Set(hidden.slice(MOST_KEPT)), answered: answered.length }
}

const ofOthers = (records: readonly StoredRecord[], { address }: StoredAccount): readonly StoredRecord[] =>
  records.filter((record) => isOpen(record) && isMember(record, address) && record.owner !== address)

const isAnswered = (subscription: StoredDoc | undefined): boolean =>
  subscription?.type === 'subscription' &&
  subscription.state !== 'invite' &&
  !(subscription.state === 'ended' && subscription.withdrawn === true)
