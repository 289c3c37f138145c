import type { Feature } from '../feature.ts'
import type { Platform } from '../platform.ts'
import type { Member } from '../workers/documents.ts'
import { createNamePartition } from '../workers/name-partition.ts'
import { keepUserDatabases } from './deleted-databases.ts'

/** Makes a user's control database again if it was deleted. The handlers of accounts are the channels'. */
export function accountsFeature(platform: Platform): Feature {
  const { config, couch, worker, signal } = platform
  const { controlDb } = config
  const partition = createNamePartition({ ...worker, takesPart: managesAccounts(controlDb), signal })
  return { run: (until) => keepUserDatabases({ ...platform, couch: couch.work, controlDb, partition }, until) }
}

/** Whether a worker keeps the accounts of this control database: all that serve it do. */
const managesAccounts =
  (controlDb: string) =>
  ({ options }: Member): boolean =>
    (options.control as { database?: unknown } | undefined)?.database === controlDb
