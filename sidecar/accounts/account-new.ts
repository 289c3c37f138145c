import type { StoredAccount } from './account-documents.ts'
import { newUserId } from './account-names.ts'

/** account new → changed: gives the account a user id. Only one worker may: the database's name follows from the id. */
export const giveUserId =
  ({ controlDb }: { readonly controlDb: string }) =>
  async (account: StoredAccount) => {
    const user_id = account.user_id ?? newUserId(controlDb)
    return { ...account, user_id, state: 'changed' as const }
  }
