import type { DbName } from '../../accounts/account-names.ts'
import type { Couch } from '../../couch/client.ts'
import type { CallOptions } from '../../couch/database.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import { closeDatabase } from '../../deploy/make-database.ts'
import type { Close } from '../channel-documents.ts'

/** Closes a database to all but server admins, or deletes it. May run twice. A missing database is no error. */
export async function endDatabase(couch: Couch, name: DbName, close: Close, options: CallOptions): Promise<void> {
  const database = couch.db(name)
  try {
    await closeDatabase(database, options)
  } catch (thrown) {
    if (isCouchError(thrown, 'not_found')) return
    throw thrown
  }
  if (close === 'delete') await database.drop(options)
}
