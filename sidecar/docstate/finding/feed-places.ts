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
  /** The control database, where the places are kept: no client writes there. */
  readonly control: Database
  /** Those that were read before, by their ids. Default none. */
  readonly known?: Map<string, Place> | undefined
  readonly clock: Clock
  readonly random: Random
}

/** How far a handler has come in the feed of a database, of all workers together. */
export interface Place {
  /** Where it began. */
  readonly first: Seq
  /** Before this nothing is left to do. */
  seq: Seq
  /** As it is kept. */
  kept: Seq | undefined
}

/** Places in the feed of one database, by type and state. */
export interface FeedPlaces {
  /**
   * Where the feed was when the first worker had the handler: a database that is younger is all new. `first`: where those begin that
   * have no place; now, where it is not said. Throws `CouchError`.
   */
  of(pair: TypeAndState, first: Seq | undefined, signal: AbortSignal): Promise<Place>
  /** Makes sure that these have their places, before anything is read; for as long as it takes. */
  begin(pairs: readonly TypeAndState[], first: Seq | undefined, signal: AbortSignal): Promise<void>
  /** Throws `CouchError`. */
  keep(pair: TypeAndState, place: Place, signal: AbortSignal): Promise<void>
  /** Another worker moves it on: what is known of it here grows old. */
  forget(pair: TypeAndState): void
  /** The database is another, or an older copy of itself. */
  clear(): void
}

/** Of the document that says since when a handler is there. */
const handlerId = ({ type, state }: TypeAndState) => `since:${type}/${state}`
/** Of the one that holds its place in a database. */
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

  /** None if it was of another database of this name, or the database has lost changes before it. */
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

  /** When the first worker had this handler, milliseconds since the epoch. */
  async function beganAt(pair: TypeAndState, signal: AbortSignal): Promise<number> {
    const _id = handlerId(pair)
    for (;;) {
      const at = Date.parse(String((await control.find(_id, {}, { signal }))?.at))
      if (!Number.isNaN(at)) return at
      await control.put({ _id, type: 'since', at: isoTime(clock.now()) }, { signal }).catch(ignoreConflict)
    }
  }

  /** Of two workers the one that comes later counts for no less than the other: an earlier place holds more. */
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
          if (!isCouchError(thrown, 'not_found')) throw thrown // where there is no database yet, all of it will be new
        }
      }
    },
  }
}

/** Of CouchDB in seconds, of others in milliseconds; never where it does not say so. */
function madeAt(startTime: string): number {
  const time = Number(startTime)
  if (!(time > 0)) return -Infinity
  return time > 1e11 ? time : time * 1000 + 999
}

function ignoreConflict(thrown: unknown): void {
  if (!isCouchError(thrown, 'conflict')) throw thrown
}
