import type { Resolver } from '../docstate/conflicts/merge.ts'
import type { Account } from './account-documents.ts'

/** Merges two accounts of one address that a cluster accepted: combines devices and channels, to be reconciled. */
export const mergeAccount: Resolver = ({ ours, theirs }) => {
  const [one, other] = [ours, theirs] as unknown as [Account, Account]
  const database = one.database ?? other.database
  const user_id =
    (one.database !== undefined ? one.user_id : other.database && other.user_id) ?? one.user_id ?? other.user_id
  const archived = [...(one.archived ?? []), ...(other.archived ?? [])]
  return {
    ...one,
    ...(user_id !== undefined && { user_id }),
    ...(database !== undefined && { database }),
    state: user_id === undefined ? 'new' : 'changed',
    devices: [...new Set([...one.devices, ...other.devices])],
    channels: [...new Set([...one.channels, ...other.channels])],
    ...(archived.length > 0 && { archived: [...new Set(archived)] }),
  }
}
