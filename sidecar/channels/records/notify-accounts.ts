import type { Accounts } from '../../accounts/accounts.ts'
import type { StoredAccount } from '../../accounts/account-documents.ts'
import type { CallOptions } from '../../couch/database.ts'
import type { StoredRecord } from '../channel-documents.ts'

const TOGETHER = 8

/** Has the accounts of a channel's owner, members and former members reconciled. Returns the members' accounts. */
export async function notifyAccounts(
  accounts: Accounts,
  { _id: channel, owner, members, former }: StoredRecord,
  options: CallOptions,
): Promise<readonly StoredAccount[]> {
  await accounts.notify(owner, { channel }, options)
  for (const address of former) await accounts.remind(address, options)
  const notified: StoredAccount[] = []
  for (let from = 0; from < members.length; from += TOGETHER) {
    const some = members.slice(from, from + TOGETHER)
    notified.push(...(await Promise.all(some.map((address) => accounts.notify(address, { channel }, options)))))
  }
  return notified
}
