import type { Database } from '../../couch/database.ts'
import { isCouchError } from '../../couch/errors.ts'
import { DeployError } from '../errors.ts'
import { readRecord, type Holder } from './record.ts'

/** For who has lost his place: to whom, as far as that can be found out. */
export async function taken(database: Database): Promise<DeployError> {
  try {
    const winner = await readRecord(database)
    if (winner?.holder) return busyWith(database, winner.holder)
    await database.info()
  } catch (thrown) {
    if (!isCouchError(thrown)) throw thrown
    if (thrown.code === 'not_found') return new DeployError('no_database', [`${database.name} was deleted meanwhile`])
  }
  return new DeployError('busy', [`${database.name}: another deploy has been at work meanwhile; run it again`])
}

export const busyWith = ({ name }: Database, holder: Holder) =>
  new DeployError('busy', [
    `${name}: ${holder.name} has been deploying here since ${holder.since} and writes heartbeats; run it again when that is done, or with --take-over`,
  ])
