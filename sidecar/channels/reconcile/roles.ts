import type { CallOptions, Database } from '../../couch/database.ts'
import type { StoredDoc } from '../../couch/documents.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import { same } from '../../../ddocs/lib/same.ts'

/** Roles of owners and channels. An operator gave all other roles of a user. */
const OURS = /^(owner|channel)-[0-9a-f]{32}$/

/**
 * Gives these users exactly these owner and channel roles. Removes conflicting revisions of a user's document: they
 * would come back when the document is deleted. True if nothing had to change. Otherwise the caller must check again:
 * another worker may know newer roles, or have written at the same time, and a cluster accepts both writes.
 *
 * @param docs documents of `_users`, read before the desired roles were read
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
