/**
 * What handlers with `since: 'now'` take: documents that came into their state, or were changed in it, after the handler was
 * there. A document does not say when that was, but a feed does: it is what has changed since a place.
 *
 * That place is kept in the control database, for each handler and database. All that changed before it is left alone; of what
 * changed after it those documents that wait are listed, by the server's own filter. Once all of them are done, the place
 * moves on, so that a list costs what has happened since, and not since the beginning.
 */
import { z } from 'zod'
import { isoTime, type Clock } from '../../core/clock.ts'
import type { Random } from '../../core/backoff.ts'
import type { Database } from '../../couch/database.ts'
import { SEQ_ZERO, seqFrom, seqText, type ChangesPage, type Seq, type StoredDoc } from '../../couch/documents.ts'
import { isCouchError, type CouchError } from '../../couch/errors.ts'
import { changesAt } from '../../couch/shard-seqs.ts'
import { withRetries } from '../../couch/with-retries.ts'
import type { TypeAndState } from '../../workers/partitioning.ts'
import { docstateOf } from '../classify.ts'
import type { Registration } from '../types.ts'
import { VIEW_TIMEOUT_MS, type Listed } from './pages.ts'

export interface SinceOptions {
  readonly database: Database
  /** The control database, where the places are kept. */
  readonly control: Database
  readonly clock: Clock
  readonly random: Random
}

export interface Since {
  /**
   * Makes sure that the handlers have their places, before anything is read. `first`: where those begin that have none; now, where it is not
   * said.
   */
  begin(registrations: readonly Registration[], first: Seq | undefined, signal: AbortSignal): Promise<void>
  /** The database is another, or an older copy of itself. */
  replaced(): void
  /** The documents that wait and have changed since the place. Throws `CouchError`. */
  pages(pair: TypeAndState, signal: AbortSignal): AsyncGenerator<Listed[]>
}

export const isSinceNow = ({ options }: Pick<Registration, 'options'>): boolean => options.since === 'now'

/** Of the document that says since when a handler is there. */
const handlerId = ({ type, state }: TypeAndState) => `since:${type}/${state}`
/** Of the one that holds its place in a database. */
const placeId = (pair: TypeAndState, database: string) => `${handlerId(pair)}@${database}`

export interface OlderOptions {
  readonly database: Database
  readonly control: Database
  readonly signal: AbortSignal | undefined
}

/** Whether a document has not changed since the handler was there; undefined where no worker has had it yet. Throws `CouchError`. */
export async function isOlder(
  { database, control, signal }: OlderOptions,
  pair: TypeAndState,
  id: string,
): Promise<boolean | undefined> {
  const kept = stored.safeParse(await control.find(placeId(pair, database.name), {}, { signal }))
  if (!kept.success) return undefined
  const query = { since: kept.data.first, filter: '_doc_ids', doc_ids: JSON.stringify([id]) }
  const { results } = await database.changesPage(query, { signal, timeoutMs: VIEW_TIMEOUT_MS })
  return results.length === 0
}

interface Place {
  /** Where the handler began. */
  readonly first: Seq
  /** Before this nothing waits. */
  seq: Seq
  /** As it is kept. */
  kept: Seq | undefined
  /** What waited when the list had come to `seq`: once none of it does, the place moves there. */
  ahead: { readonly seq: Seq; readonly ids: ReadonlySet<string> } | undefined
}

const PAGE = 500
/** Of more that wait, the place does not move. */
const MOST_IDS = 20_000
/** A place is kept again when the next list would read so many changes more than it has to. */
const KEEP_EVERY = 1000

export function createSince({ database, control, clock, random }: SinceOptions): Since {
  const places = new Map<string, Place>()
  let hasSelector = true

  async function placeOf(pair: TypeAndState, first: Seq | undefined, signal: AbortSignal): Promise<Place> {
    const id = placeId(pair, database.name)
    const known = places.get(id)
    if (known) return known
    const place = (await readPlace(id, signal)) ?? (await makePlace(pair, first, signal))
    places.set(id, place)
    return place
  }

  /** None if it was of another database of this name, or the database has lost changes before it. */
  async function readPlace(id: string, signal: AbortSignal): Promise<Place | undefined> {
    const kept = stored.safeParse(await control.find(id, {}, { signal }))
    if (!kept.success) return undefined
    const { first, seq, life } = kept.data
    for (const text of [seq, first]) {
      const now = await database.life(seqFrom(text), { signal })
      if (now.life !== life) return undefined
      if (!now.isBehind) return { ...placeAt(seqFrom(first)), seq: seqFrom(text), kept: seqFrom(text) }
    }
    return undefined
  }

  async function makePlace(pair: TypeAndState, first: Seq | undefined, signal: AbortSignal): Promise<Place> {
    const began = await beganAt(pair, signal)
    const info = await database.info({ signal })
    if (madeAt(info.instance_start_time) >= began) return placeAt(SEQ_ZERO) // younger than the handler: all of it is new
    const place = placeAt(first ?? info.update_seq)
    await keep(pair, place, signal)
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

  /** Changes after a place, of documents in this state that may wait. */
  async function read({ type, state }: TypeAndState, since: Seq, signal: AbortSignal): Promise<Part> {
    const query = { since: seqText(since), limit: PAGE }
    const options = { signal, timeoutMs: VIEW_TIMEOUT_MS }
    if (hasSelector) {
      try {
        return partFrom(await database.changesPage(query, options, waiting(type, state)))
      } catch (thrown) {
        if (!isCouchError(thrown, 'not_found')) throw thrown
        await database.info({ signal }) // it is there: so it is the filter that is not
        hasSelector = false
      }
    }
    const page = await database.changesPage({ ...query, include_docs: true }, options)
    return partFrom(page, ({ doc }) => isWaiting(doc as StoredDoc | undefined, type, state))
  }

  return {
    async begin(registrations, first, signal) {
      for (const registration of registrations.filter(isSinceNow)) {
        const retryOf = ({ retry, code }: CouchError) => (code !== 'not_found' && retry === 'never' ? 'slowly' : retry)
        try {
          await withRetries(() => placeOf(registration, first, signal), { clock, random, signal, retryOf })
        } catch (thrown) {
          if (!isCouchError(thrown, 'not_found')) throw thrown // where there is no database yet, all of it will be new
        }
      }
    },

    replaced() {
      places.clear()
    },

    async *pages(pair, signal) {
      const place = await placeOf(pair, undefined, signal)
      const ids = new Set<string>()
      let from = place.seq
      for (let isEnd = false; !isEnd;) {
        const part = await read(pair, from, signal)
        for (const id of part.ids) if (ids.size <= MOST_IDS) ids.add(id)
        yield part.ids.map((id) => ({ id, at: null }))
        isEnd = part.isLast
        from = part.seq
      }
      advance(place, from, ids)
      if (changesAt(place.seq) - changesAt(place.kept ?? SEQ_ZERO) >= KEEP_EVERY) await keep(pair, place, signal)
    },
  }
}

interface Part {
  readonly ids: readonly string[]
  /** After them. */
  readonly seq: Seq
  readonly isLast: boolean
}

function partFrom(
  { results, last_seq }: ChangesPage,
  isWanted: (row: ChangesPage['results'][number]) => boolean = () => true,
): Part {
  const ids = results.filter(isWanted).map(({ id }) => String(id))
  return { ids, seq: last_seq, isLast: results.length < PAGE }
}

const placeAt = (first: Seq): Place => ({ first, seq: first, kept: undefined, ahead: undefined })

/** The list has come to `seq`, and has found these. */
function advance(place: Place, seq: Seq, ids: ReadonlySet<string>): void {
  if (ids.size === 0) {
    place.seq = seq
    place.ahead = undefined
    return
  }
  const { ahead } = place
  if (ahead && [...ahead.ids].some((id) => ids.has(id))) return
  if (ahead) place.seq = ahead.seq
  place.ahead = ids.size > MOST_IDS ? undefined : { seq, ids }
}

const stored = z.object({ first: z.string(), seq: z.string(), life: z.string() })

/** Of CouchDB in seconds, of others in milliseconds; never where it does not say so. */
function madeAt(startTime: string): number {
  const time = Number(startTime)
  if (!(time > 0)) return -Infinity
  return time > 1e11 ? time : time * 1000 + 999
}

function ignoreConflict(thrown: unknown): void {
  if (!isCouchError(thrown, 'conflict')) throw thrown
}

/** Marks of documents that do not wait, or are listed by the index. */
const MARKS = ['handled', 'parked', 'claim', 'retry_at'] as const

/** As a filter of CouchDB's. */
const waiting = (type: string, state: string) => ({
  type,
  state,
  $or: [
    { docstate: { $exists: false } },
    { 'docstate.state': { $ne: state } },
    { $and: MARKS.map((mark) => ({ [`docstate.${mark}`]: { $exists: false } })) },
  ],
})

function isWaiting(doc: StoredDoc | undefined, type: string, state: string): boolean {
  if (doc?.type !== type || doc.state !== state) return false
  const docstate = docstateOf(doc)
  return MARKS.every((mark) => docstate?.[mark] === undefined)
}
