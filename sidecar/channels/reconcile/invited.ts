import type { StoredAccount } from '../../accounts/account-documents.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { mailboxHashOf } from '../../accounts/owner.ts'
import { isMember, isOpen, type StoredRecord } from '../channel-documents.ts'
import { subscriptionIdOf } from '../channel-names.ts'

/** What a user sees of the channels of others. */
export interface Invited {
  /** Ids of the records of invitations for which there is no room now. */
  readonly hidden: ReadonlySet<string>
  /** Those of them that are forgotten. */
  readonly forgotten: ReadonlySet<string>
  /** How many the user has answered, and has not left. */
  readonly answered: number
}

/** Invitations that a user has not answered: as many are shown, of an unknown owner, and in all. */
const [MOST_OF_ONE, MOST_SHOWN] = [5, 50]
/** So many more are remembered, and shown when there is room. */
const MOST_KEPT = 500

/** Fewer are all shown: nothing has to be read for that. */
export const mayBeTooMany = (records: readonly StoredRecord[], account: StoredAccount): boolean =>
  ofOthers(records, account).length > MOST_OF_ONE

/**
 * Strangers may invite a user as often as they like. So the list has room for some, those first whose channels the user is in
 * already, or who is in the user's own, then the last that came. Pure.
 *
 * @param there what stands in the user's database, by id
 */
export function invitedTo(
  records: readonly StoredRecord[],
  account: StoredAccount,
  there: ReadonlyMap<string, StoredDoc>,
): Invited {
  const others = ofOthers(records, account)
  const answered = others.filter(({ _id }) => isAnswered(there.get(subscriptionIdOf(_id))))
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
