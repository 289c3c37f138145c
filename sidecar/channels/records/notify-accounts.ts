import type { Accounts } from '../../accounts/accounts.ts'
import type { StoredAccount } from '../../accounts/account-documents.ts'
import type { CallOptions } from '../../couch/database.ts'
import type { StoredRecord } from '../channel-documents.ts'

const TOGETHER = 8

/** Has the accounts of all look again who are, or were, members of a channel. Resolves with those of its members. */
export async function notifyAccounts(
  accounts: Accounts,
  { _id: channel, owner, members, former }: StoredRecord,
  options: CallOptions,
): Promise<readonly StoredAccount[]> {
  await accounts.tell(owner, { channel }, options)
  for (const address of former) await accounts.remind(address, options)
  const told: StoredAccount[] = []
  for (let from = 0; from < members.length; from += TOGETHER) {
    const some = members.slice(from, from + TOGETHER)
    told.push(...(await Promise.all(some.map((address) => accounts.tell(address, { channel }, options)))))
  }
  return told
}
