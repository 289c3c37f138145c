import { userDatabasesOf } from '../../sidecar/accounts/account-names.ts'
import { isRecord } from '../../sidecar/channels/channel-documents.ts'
import { isAmong } from '../../sidecar/core/glob.ts'
import type { Couch } from '../../sidecar/couch/client.ts'
import { answerOf } from './answers.ts'

/** The databases of users and channels that a control database has created, including deleted ones. */
export async function channelDatabases(couch: Couch, controlDb: string): Promise<string[]> {
  const names = await answerOf<string[]>(couch, { path: '_all_dbs' })
  const users = names.filter((name) => isAmong(name, [userDatabasesOf(controlDb)]))
  const records = names.includes(controlDb) ? await couch.db(controlDb).withPrefix('channel:') : []
  const channels = records
    .filter(isRecord)
    .flatMap(({ database, ended = [] }) => [database, ...ended.map((one) => one.database)])
  return [...new Set([...users, ...channels])]
}
