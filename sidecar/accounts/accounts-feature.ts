import type { Feature } from '../feature.ts'
import type { Platform } from '../platform.ts'
import type { Member } from '../workers/worker-documents.ts'
import { createNamePartition, type NamePartition } from '../workers/name-partition.ts'
import type { Logger } from 'pino'
import type { Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import { isAmong } from '../core/glob.ts'
import type { Couch } from '../couch/client.ts'
import { createSurvey, type Survey } from '../couch/survey.ts'
import { createPeriodicRun } from '../core/periodic.ts'
import { findMissing } from '../deploy/missing.ts'
import type { Events } from '../events/channels.ts'
import { createAccounts } from './accounts.ts'
import { ownershipIdOf, userDatabasesOf } from './account-names.ts'

/** Recreates a user's control database if it was deleted. The handlers of accounts are in `channels/register.ts`. */
export function accountsFeature(platform: Platform): Feature {
  const { config, couch, worker, signal } = platform
  const { controlDb } = config
  const partition = createNamePartition({ ...worker, takesPart: managesAccounts(controlDb), signal })
  return { run: (until) => keepUserDatabases({ ...platform, couch: couch.work, controlDb, partition }, until) }
}

/** Whether a worker manages the accounts of this control database: each worker that serves the database does. */
const managesAccounts =
  (controlDb: string) =>
  ({ options }: Member): boolean =>
    (options.control as { database?: unknown } | undefined)?.database === controlDb

interface DeletedDatabasesOptions {
  readonly couch: Couch
  /** Lists all databases. Default: a survey by `couch`. */
  readonly survey?: Survey
  /** A time in the clock's ticks that all periodic runs of the process share (`core/periodic.ts`). */
  readonly alignedTo?: number
  readonly controlDb: string
  readonly events: Events
  /** Selects the one worker that does this work. */
  readonly partition: NamePartition
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

/** Interval of the periodic run, for deletions without an event. */
const EVERY_MS = 60_000

/** Finds accounts whose databases are missing, for example deleted by an admin, and has the databases made again. */
export function keepUserDatabases(options: DeletedDatabasesOptions, signal: AbortSignal): Promise<void> {
  const { couch, controlDb, events, partition, alignedTo, clock, random, log } = options
  const { survey = createSurvey(couch) } = options
  const control = couch.db(controlDb)
  const accounts = createAccounts(control)
  const globs = [userDatabasesOf(controlDb)]
  const isOfUser = (name: string) => isAmong(name, globs)

  async function sweep(signal: AbortSignal): Promise<void> {
    if (!partition.isOurs(controlDb)) return
    const existing = new Set(await survey.list(isOfUser, signal))
    for await (const ids of control.idsWithPrefix(ownershipIdOf(''), { signal })) {
      const databases = ids.map((id) => id.slice(ownershipIdOf('').length))
      const unlisted = databases.filter((database) => !existing.has(database)) // a node may list a new database late
      for (const database of await findMissing(couch, unlisted, signal)) await remind(database, signal)
    }
  }

  async function remind(database: string, signal: AbortSignal): Promise<void> {
    const account = await accounts.ofDatabase(database, { signal })
    if (account?.database !== database || account.state !== 'ready') return // not made yet, or already being made
    log.warn({ db: database }, 'the database of a user is missing and is created again')
    await accounts.remind(account.address, { signal })
  }

  const sweeps = createPeriodicRun({ sweep, everyMs: () => EVERY_MS, alignedTo, clock, random, log })
  events.subscribe('database:deleted', ({ event }) => isOfUser(event.database) && sweeps.soon(), { signal })
  partition.onChange(() => sweeps.soon(), signal)
  return sweeps.run(signal)
}
