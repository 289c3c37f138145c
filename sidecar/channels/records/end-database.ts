import type { CallOptions, Database } from '../../couch/database.ts'
import { isCouchError } from '../../couch/errors.ts'
import { closeDatabase } from '../../deploy/make-database.ts'
import type { Close } from '../documents.ts'

/** Twice is fine, and so is a database that is not there. */
export async function endDatabase(database: Database, close: Close, options: CallOptions): Promise<void> {
  try {
    await closeDatabase(database, options)
  } catch (thrown) {
    if (isCouchError(thrown, 'not_found')) return
    throw thrown
  }
  if (close === 'delete') await database.drop(options)
}
