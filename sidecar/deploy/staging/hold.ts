/**
 * One deploy at a time works in a database: the one whose run stands in the record. The record is a document, written
 * with its revision, so of two that reach for it one gets a conflict; what a cluster stores below its quorum does not
 * count. Its holder writes heartbeats. A holder that is silent is dead: the next takes its place, and if it was
 * only asleep, its next note meets a conflict, and it stops.
 */
import { randomUUID } from 'node:crypto'
import { isoTime } from '../../core/clock.ts'
import { Stillness } from '../../core/stillness.ts'
import type { Database } from '../../couch/database.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import { createWriter } from '../../couch/writer.ts'
import { DeployError } from '../deploy-errors.ts'
import { beat } from './beat.ts'
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
  /** Writes down what comes next, before it is done. Throws `DeployError` `busy` where another has taken the place. */
  note(
    step: StagedStep,
    change?: { readonly ddoc?: string } & Partial<Pick<DeployRecord, 'previous' | 'known'>>,
  ): Promise<void>
  /**
   * The run is complete: there is nothing to go on with.
   *
   * @param only of these design documents; what was there before others had begun to change stays in the record
   */
  complete(only?: readonly string[]): Promise<void>
}

/** Does `work` as the only one. A run that breaks off leaves the record to the next. Throws `busy`. */
export async function withHold<T>(
  database: Database,
  ddocs: readonly string[],
  surroundings: Surroundings,
  work: (hold: Hold) => Promise<T>,
): Promise<T> {
  const { clock, name, deadAfterMs, signal } = surroundings
  const now = () => isoTime(clock.now())
  const holder: Holder = { run: randomUUID(), name, since: now() }
  const there = await findAbandoned(database, surroundings)
  let record: DeployRecord = there
    ? { ...there.record, ddocs: [...new Set([...there.record.ddocs, ...ddocs])] }
    : { ddocs, log: [], previous: {}, known: {} }
  let rev = there?.rev

  async function write(next: DeployRecord, until: AbortSignal): Promise<void> {
    const written = await createWriter(database, { signal: until }).write(recordDoc(next, rev))
    if (written.kind === 'refused') throw new DeployError('server_refused', [`${database.name}: ${written.reason}`])
    if (written.kind === 'accepted') {
      if (next.log.length === 1) await database.remove(RECORD_ID, written.rev, { signal: until })
      throw new DeployError('busy', [`${database.name}: the cluster lacks its quorum, or another deploy was faster`])
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

  /** Whether another has taken the place: then what is gone or changed is no wonder. */
  async function isLost(): Promise<boolean> {
    try {
      return (await database.find(RECORD_ID))?._rev !== rev
    } catch (thrown) {
      if (isCouchError(thrown)) return false // unknown; what was thrown says enough
      throw thrown
    }
  }

  /** Not by the signal, which may be why it ends: the next need not wait until this one is found dead. */
  async function letGo(): Promise<void> {
    const { holder: _holder, ...left } = record
    try {
      await write(left, AbortSignal.timeout(deadAfterMs))
    } catch {
      // Then the next waits a little, or has the place already.
    }
  }
}

/** The record that a run has left behind, if there is one. Throws `busy` where its holder lives. */
async function findAbandoned(database: Database, surroundings: Surroundings) {
  const there = await readRecord(database, { signal: surroundings.signal })
  if (!there) return undefined
  const { rev, ...record } = there
  const { holder } = record
  if (holder && !surroundings.takeOver && (await isAlive(database, { ...there, holder }, surroundings))) {
    throw busyWith(database, holder)
  }
  return { rev, record }
}

/** The error of a run that has lost the record: names the new holder, if that can be read. */
async function taken(database: Database): Promise<DeployError> {
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

const busyWith = ({ name }: Database, holder: Holder) =>
  new DeployError('busy', [
    `${name}: ${holder.name} has been deploying here since ${holder.since} and writes heartbeats; run it again when that is done, or with --take-over`,
  ])

const LOOKS = 20

/**
 * Whether the holder of the record writes a heartbeat, or changes it at all, while it is watched. No clock of
 * another machine is believed: what counts is that something changes.
 */
async function isAlive(
  database: Database,
  there: StoredRecord & { readonly holder: Holder },
  { clock, deadAfterMs, onProgress, signal }: Surroundings,
): Promise<boolean> {
  onProgress({ kind: 'watching', database: database.name, holder: there.holder, forMs: deadAfterMs })
  const stillness = new Stillness(() => clock.ticks())
  const look = async () => {
    const [record, heartbeat] = await Promise.all([RECORD_ID, BEAT_ID].map((id) => database.find(id, {}, { signal })))
    return { rev: record?._rev, mark: JSON.stringify([record?._rev, heartbeat]) }
  }
  const first = await look()
  if (first.rev !== there.rev) return true
  for (let { mark } = first; mark === first.mark; { mark } = await look()) {
    const waitMs = stillness.remaining(database.name, mark, deadAfterMs)
    if (waitMs === 0) return false
    await clock.sleep(Math.min(waitMs, deadAfterMs / LOOKS), signal)
  }
  return true
}
