import type { StoredAccount } from './account-documents.ts'
import { newUserId } from './account-names.ts'

/** account new → changed: the account gets its user's id. One worker does it: the database's name follows from the id. */
export const giveUserId =
  ({ controlDb }: { readonly controlDb: string }) =>
  async (account: StoredAccount) => {
    const user_id = account.user_id ?? newUserId(controlDb)
    return { ...account, user_id, state: 'changed' as const }
  }
