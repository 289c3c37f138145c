/**
 * One deploy at a time works in a database: the run that the record names. The record is a document, written with its
 * revision, so one of two concurrent writers gets a conflict. A write below the cluster's quorum does not count. The
 * holder writes heartbeats. A silent holder is dead, and the next run takes over. If the old holder was only
 * suspended, its next note gets a conflict, and it stops.
 */
import { randomUUID } from 'node:crypto'
import { isoTime, type Clock } from '../../core/clock.ts'
import { Stillness } from '../../core/stillness.ts'
import type { Database } from '../../couch/database.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import { createLocalDoc } from '../../couch/local.ts'
import { createWriter } from '../../couch/writer.ts'
import { DeployError } from '../deploy-errors.ts'
import type { Surroundings } from './surroundings.ts'
import {
  readRecord,
  recordDoc,
  RECORD_ID,
  removeRecord,
  restOf,
  type DeployRecord,
  type Holder,
  type StagedStep,
  BEAT_ID,
  type StoredRecord,
} from './record.ts'

export interface Hold {
  readonly record: DeployRecord
  /** Records the next step before it begins. Throws `DeployError` `busy` if another run has taken over. */
  note(
    step: StagedStep,
    change?: { readonly ddoc?: string } & Partial<Pick<DeployRecord, 'previous' | 'known'>>,
  ): Promise<void>
  /**
   * Marks the run as complete: the next run has nothing to resume.
   *
   * @param only the complete design documents; the record keeps the previous versions of others
   */
  complete(only?: readonly string[]): Promise<void>
}

/** Does `work` as the only deploy in the database. An interrupted run leaves the record to the next. Throws `busy`. */
export async function withHold<T>(
  database: Database,
  ddocs: readonly string[],
  surroundings: Surroundings,
  work: (hold: Hold) => Promise<T>,
): Promise<T> {
  const { clock, name, deadAfterMs, signal } = surroundings
  const now = () => isoTime(clock.now())
  const holder: Holder = { run: randomUUID(), name, since: now() }
  const current = await findAbandoned(database, surroundings)
  let record: DeployRecord = current
    ? { ...current.record, ddocs: [...new Set([...current.record.ddocs, ...ddocs])] }
    : { ddocs, log: [], previous: {}, known: {} }
  let rev = current?.rev

  async function write(next: DeployRecord, until: AbortSignal): Promise<void> {
    const written = await createWriter(database, { signal: until }).write(recordDoc(next, rev))
    if (written.kind === 'refused') throw new DeployError('server_refused', [`${database.name}: ${written.reason}`])
    if (written.kind === 'accepted') {
      if (next.log.length === 1) await database.remove(RECORD_ID, written.rev, { signal: until })
      throw new DeployError('busy', [`${database.name}: the cluster lacks its quorum, or another deploy was first`])
    }
    if (written.kind === 'conflict') throw await taken(database)
    rev = written.rev
    record = next
  }
  const note: Hold['note'] = async (step, { ddoc, ...change } = {}) => {
    const log = [...record.log, { step, ...(ddoc !== undefined && { ddoc }), at: now() }]
    await write({ ...record, ...change, holder, log }, signal)
  }

  await note('began')
  const beating = beat(database, holder.run, clock, deadAfterMs / 5)
  let completed = false
  try {
    return await work({
      get record() {
        return record
      },
      note,
      async complete(only) {
        const rest = only && restOf(record, only)
        if (rest) await write(rest, signal)
        else await removeRecord(database, rev!, signal)
        completed = true
      },
    })
  } catch (thrown) {
    const isStrange = isCouchError(thrown, 'not_found') || isCouchError(thrown, 'conflict')
    throw isStrange && (await isLost()) ? await taken(database) : thrown
  } finally {
    await beating.stop()
    if (!completed) await letGo()
  }

  /** Whether another run has taken over. This explains missing and changed documents. */
  async function isLost(): Promise<boolean> {
    try {
      return (await database.find(RECORD_ID))?._rev !== rev
    } catch (thrown) {
      if (isCouchError(thrown)) return false // unknown: the original error is thrown
      throw thrown
    }
  }

  /** Releases the record, so that the next run need not wait. Ignores the signal, which may be the cause of the end. */
  async function letGo(): Promise<void> {
    const { holder: _holder, ...left } = record
    try {
      await write(left, AbortSignal.timeout(deadAfterMs))
    } catch {
      // The next run waits until this holder is dead, or has already taken over.
    }
  }
}

/** Reads the record of an interrupted run, if any. Throws `busy` if its holder lives. */
async function findAbandoned(database: Database, surroundings: Surroundings) {
  const current = await readRecord(database, { signal: surroundings.signal })
  if (!current) return undefined
  const { rev, ...record } = current
  const { holder } = record
  if (holder && !surroundings.takeOver && (await isAlive(database, { ...current, holder }, surroundings))) {
    throw busyWith(database, holder)
  }
  return { rev, record }
}

/**
 * Writes heartbeats of the run that holds a database, until `stop`. Each differs from the one before. They are in a
 * `_local` document, which causes no change rows. The record alone decides which run holds the database.
 */
function beat(database: Database, run: string, clock: Clock, everyMs: number): { stop(): Promise<void> } {
  const stopping = new AbortController()
  const { signal } = stopping
  const local = createLocalDoc(database, BEAT_ID)

  async function goOn(): Promise<void> {
    for (let count = 1; ; count++) {
      try {
        await local.write({ run, count }, signal)
      } catch (thrown) {
        if (!isCouchError(thrown)) throw thrown // other requests meet and report the same error
      }
      await clock.sleep(everyMs, signal)
    }
  }

  const going = goOn().catch((thrown: unknown) => {
    if (!signal.aborted) throw thrown
  })
  return {
    async stop() {
      stopping.abort(new Error('done'))
      await going
    },
  }
}

/** The error of a run that has lost the record. It names the new holder, if known. */
async function taken(database: Database): Promise<DeployError> {
  try {
    const winner = await readRecord(database)
    if (winner?.holder) return busyWith(database, winner.holder)
    await database.info()
  } catch (thrown) {
    if (!isCouchError(thrown)) throw thrown
    if (thrown.code === 'not_found')
      return new DeployError('no_database', [`${database.name} was deleted in the meantime`])
  }
  return new DeployError('busy', [
    `${database.name}: another deploy has changed it in the meantime; run the deploy again`,
  ])
}

const busyWith = ({ name }: Database, holder: Holder) =>
  new DeployError('busy', [
    `${name}: ${holder.name} has been deploying here since ${holder.since} and writes heartbeats; run the deploy again after that, or with --take-over`,
  ])

const LOOKS = 20

/**
 * Whether the holder writes a heartbeat or changes the record while this run watches. Only a change counts: clocks of
 * other machines are not trusted.
 */
async function isAlive(
  database: Database,
  current: StoredRecord & { readonly holder: Holder },
  { clock, deadAfterMs, onProgress, signal }: Surroundings,
): Promise<boolean> {
  onProgress({ kind: 'watching', database: database.name, holder: current.holder, forMs: deadAfterMs })
  const stillness = new Stillness(() => clock.ticks())
  const look = async () => {
    const [record, heartbeat] = await Promise.all([RECORD_ID, BEAT_ID].map((id) => database.find(id, {}, { signal })))
    return { rev: record?._rev, mark: JSON.stringify([record?._rev, heartbeat]) }
  }
  const first = await look()
  if (first.rev !== current.rev) return true
  for (let { mark } = first; mark === first.mark; { mark } = await look()) {
    const waitMs = stillness.remaining(database.name, mark, deadAfterMs)
    if (waitMs === 0) return false
    await clock.sleep(Math.min(waitMs, deadAfterMs / LOOKS), signal)
  }
  return true
}
