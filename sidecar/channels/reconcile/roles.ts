import type { CallOptions, Database } from '../../couch/database.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { isCouchError } from '../../couch/errors.ts'
import { same } from '../../../ddocs/lib/same.ts'

/** Roles of owners and channels. Whatever else a user has, an operator has given. */
const OURS = /^(owner|channel)-[0-9a-f]{32}$/

/**
 * Gives these users exactly these roles of ours. False if one of them has changed since it was read: then somebody else
 * may know something newer.
 *
 * @param users documents of `_users`, read before it was known which roles they are to have
 */
export async function giveRoles(
  users: Database,
  docs: readonly StoredDoc[],
  roles: readonly string[],
  options: CallOptions,
): Promise<boolean> {
  for (const user of docs) {
    const given = rolesOf(user)
    const wanted = [...given.filter((role) => !OURS.test(role)), ...roles]
    if (same([...given].sort(), [...wanted].sort())) continue
    try {
      await users.put({ ...user, roles: wanted }, options)
    } catch (thrown) {
      if (isCouchError(thrown, 'conflict')) return false
      throw thrown
    }
  }
  return true
}

const rolesOf = ({ roles }: StoredDoc): readonly string[] =>
  Array.isArray(roles) ? roles.filter((role) => typeof role === 'string') : []
