import { z } from 'zod'
import { isoTime, type Clock } from '../../core/clock.ts'
import type { Random } from '../../core/backoff.ts'
import type { Database } from '../../couch/database.ts'
import { SEQ_ZERO, seqFrom, seqText, type Seq } from '../../couch/documents.ts'
import { isCouchError, type CouchError } from '../../couch/couch-errors.ts'
import { withRetries } from '../../couch/with-retries.ts'
import type { TypeAndState } from '../../workers/partitioning.ts'

export interface FeedPlacesOptions {
  readonly database: Database
  /** The control database, which stores the checkpoints: no client writes to it. */
  readonly control: Database
  /** Checkpoints that were read before, by their ids. Default none. */
  readonly known?: Map<string, Place> | undefined
  readonly clock: Clock
  readonly random: Random
}

/** Checkpoint of a handler in the feed of a database, shared by all workers. */
export interface Place {
  /** Start of the handler in the feed. */
  readonly first: Seq
  /** Sequence up to which nothing is left to do. */
  seq: Seq
  /** Last stored `seq`. */
  kept: Seq | undefined
}

/** Checkpoints in the feed of one database, by type and state. */
export interface FeedPlaces {
  /**
   * Returns the checkpoint of a handler. It starts where the feed was when the first worker had the handler; a younger
   * database is all new. `first`: start of a handler without a checkpoint, default now. Throws `CouchError`.
   */
  of(pair: TypeAndState, first: Seq | undefined, signal: AbortSignal): Promise<Place>
  /** Creates missing checkpoints before the feed is read. Retries for as long as it takes. */
  begin(pairs: readonly TypeAndState[], first: Seq | undefined, signal: AbortSignal): Promise<void>
  /** Stores the checkpoint. Throws `CouchError`. */
  keep(pair: TypeAndState, place: Place, signal: AbortSignal): Promise<void>
  /** Forgets a checkpoint that another worker advances: the value known here becomes outdated. */
  forget(pair: TypeAndState): void
  /** Forgets all checkpoints: the database was recreated, or an older copy was restored. */
  clear(): void
}

/** Id of the document that records when the first worker had a handler. */
const handlerId = ({ type, state }: TypeAndState) => `since:${type}/${state}`
/** Id of the document that stores a handler's checkpoint in a database. */
export const placeId = (pair: TypeAndState, database: string) => `${handlerId(pair)}@${database}`

export const placeFields = z.object({ first: z.string(), seq: z.string(), life: z.string() })

export function createFeedPlaces(options: FeedPlacesOptions): FeedPlaces {
  const { database, control, known: places = new Map<string, Place>(), clock, random } = options

  async function of(pair: TypeAndState, first: Seq | undefined, signal: AbortSignal): Promise<Place> {
    const id = placeId(pair, database.name)
    const known = places.get(id)
    if (known) return known
    const place = (await read(id, signal)) ?? (await make(pair, first, signal))
    places.set(id, place)
    return place
  }

  /** Reads a checkpoint. None if it is of another database of this name, or the database has lost changes before it. */
  async function read(id: string, signal: AbortSignal): Promise<Place | undefined> {
    const stored = placeFields.safeParse(await control.find(id, {}, { signal }))
    if (!stored.success) return undefined
    const { first, seq, life } = stored.data
    for (const text of [seq, first]) {
      const now = await database.life(seqFrom(text), { signal })
      if (now.life !== life) return undefined
      if (!now.isBehind) return { first: seqFrom(first), seq: seqFrom(text), kept: seqFrom(text) }
    }
    return undefined
  }

  async function make(pair: TypeAndState, given: Seq | undefined, signal: AbortSignal): Promise<Place> {
    const began = await beganAt(pair, signal)
    const info = await database.info({ signal })
    const isYounger = madeAt(info.instance_start_time) >= began
    const first = isYounger ? SEQ_ZERO : (given ?? info.update_seq)
    const place = { first, seq: first, kept: undefined }
    if (!isYounger) await keep(pair, place, signal)
    return place
  }

  /** When the first worker had this handler, in milliseconds since the epoch. */
  async function beganAt(pair: TypeAndState, signal: AbortSignal): Promise<number> {
    const _id = handlerId(pair)
    for (;;) {
      const at = Date.parse(String((await control.find(_id, {}, { signal }))?.at))
      if (!Number.isNaN(at)) return at
      await control.put({ _id, type: 'since', at: isoTime(clock.now()) }, { signal }).catch(ignoreConflict)
    }
  }

  /** Stores a checkpoint. Of two concurrent writes either is safe: an earlier checkpoint covers more changes. */
  async function keep(pair: TypeAndState, place: Place, signal: AbortSignal): Promise<void> {
    const _id = placeId(pair, database.name)
    const { life } = await database.life(undefined, { signal })
    const before = await control.find(_id, {}, { signal })
    const fields = { type: 'since', first: seqText(place.first), seq: seqText(place.seq), life }
    await control.put({ ...(before && { _rev: before._rev }), _id, ...fields }, { signal }).catch(ignoreConflict)
    place.kept = place.seq
  }

  return {
    of,
    keep,
    forget: (pair) => void places.delete(placeId(pair, database.name)),
    clear: () => places.clear(),
    async begin(pairs, first, signal) {
      const retryOf = ({ retry, code }: CouchError) => (code !== 'not_found' && retry === 'never' ? 'slowly' : retry)
      for (const pair of pairs) {
        try {
          await withRetries(() => of(pair, first, signal), { clock, random, signal, retryOf })
        } catch (thrown) {
          if (!isCouchError(thrown, 'not_found')) throw thrown // no database yet: all of it will be new
        }
      }
    },
  }
}

/** Creation time in milliseconds. CouchDB reports seconds, other servers milliseconds; `-Infinity` if unknown. */
function madeAt(startTime: string): number {
  const time = Number(startTime)
  if (!(time > 0)) return -Infinity
  return time > 1e11 ? time : time * 1000 + 999
}

function ignoreConflict(thrown: unknown): void {
  if (!isCouchError(thrown, 'conflict')) throw thrown
}
