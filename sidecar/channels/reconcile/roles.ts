import type { CallOptions, Database } from '../../couch/database.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import { same } from '../../../ddocs/lib/same.ts'

/** Roles of owners and channels. Whatever else a user has, an operator has given. */
const OURS = /^(owner|channel)-[0-9a-f]{32}$/

/**
 * Gives these users exactly these roles of ours, and takes out what stands beside a user's document: it would come back when
 * that is deleted. True if there was nothing to do. Else it is to be looked at again: another worker may know something newer,
 * or have written at the same moment, and a cluster takes both.
 *
 * @param users documents of `_users`, read before it was known which roles they are to have
 */
export async function giveRoles(
  users: Database,
  docs: readonly StoredDoc[],
  roles: readonly string[],
  options: CallOptions,
): Promise<boolean> {
  let isDone = true
  for (const { _conflicts = [], ...user } of docs) {
    const given = rolesOf(user)
    const wanted = [...given.filter((role) => !OURS.test(role)), ...roles]
    const isRight = same([...given].sort(), [...wanted].sort())
    if (isRight && _conflicts.length === 0) continue
    isDone = false
    try {
      for (const rev of _conflicts) await users.remove(user._id, rev, options)
      if (!isRight) await users.put({ ...user, roles: wanted }, options)
    } catch (thrown) {
      if (!isCouchError(thrown, 'conflict') && !isCouchError(thrown, 'not_found')) throw thrown
    }
  }
  return isDone
}

const rolesOf = ({ roles }: StoredDoc): readonly string[] =>
  Array.isArray(roles) ? roles.filter((role) => typeof role === 'string') : []
