/**
 * What handlers with `since: 'now'` take: documents that came into their state, or were changed in it, after the handler was
 * there. A document does not say when that was, but a feed does: it is what has changed since a place.
 *
 * All that changed before that place is left alone; of what changed after it those documents that wait are listed, by the server's own
 * filter. Once all of them are done, the place moves on, so that a list costs what has happened since, and not since the
 * beginning.
 */
import type { Database } from '../../couch/database.ts'
import { SEQ_ZERO, type Seq } from '../../couch/documents.ts'
import { changesAt } from '../../couch/shard-seqs.ts'
import type { TypeAndState } from '../../workers/partitioning.ts'
import { docstateOf } from '../classify.ts'
import type { Registration } from '../types.ts'
import { placeFields, placeId, type FeedPlaces, type Place } from './feed-places.ts'
import { VIEW_TIMEOUT_MS, type Listed } from './pages.ts'
import type { SelectedChanges, Selection } from './selected-changes.ts'

export const isSinceNow = ({ options }: Pick<Registration, 'options'>): boolean => options.since === 'now'

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
  const kept = placeFields.safeParse(await control.find(placeId(pair, database.name), {}, { signal }))
  if (!kept.success) return undefined
  const query = { since: kept.data.first, filter: '_doc_ids', doc_ids: JSON.stringify([id]) }
  const { results } = await database.changesPage(query, { signal, timeoutMs: VIEW_TIMEOUT_MS })
  return results.length === 0
}

/** The documents that wait and have changed since the place of their handler. Throws `CouchError`. */
export type ListSince = (pair: TypeAndState, signal: AbortSignal) => AsyncGenerator<Listed[]>

/** What waited when a list had come to `seq`: once none of it does, the place moves there. */
interface Ahead {
  readonly seq: Seq
  readonly ids: ReadonlySet<string>
}

/** Of more that wait, the place does not move. */
const MOST_IDS = 20_000
/** A place is kept again when the next list would read so many changes more than it has to. */
const KEEP_EVERY = 1000

export function createListSince(places: FeedPlaces, selectedChanges: SelectedChanges): ListSince {
  const aheadOf = new WeakMap<Place, Ahead>()

  /** A list has come to `seq`, and has found these. */
  function advance(place: Place, seq: Seq, ids: ReadonlySet<string>): void {
    const ahead = aheadOf.get(place)
    if (ids.size === 0) {
      place.seq = seq
      aheadOf.delete(place)
      return
    }
    if (ahead && [...ahead.ids].some((id) => ids.has(id))) return
    if (ahead) place.seq = ahead.seq
    if (ids.size > MOST_IDS) aheadOf.delete(place)
    else aheadOf.set(place, { seq, ids })
  }

  return async function* (pair, signal) {
    const place = await places.of(pair, undefined, signal)
    const ids = new Set<string>()
    let from = place.seq
    for (let isEnd = false; !isEnd;) {
      const page = await selectedChanges(waitingIn(pair), from, { signal })
      for (const id of page.ids) if (ids.size <= MOST_IDS) ids.add(id)
      yield page.ids.map((id) => ({ id, at: null }))
      isEnd = page.isLast
      from = page.seq
    }
    advance(place, from, ids)
    if (changesAt(place.seq) - changesAt(place.kept ?? SEQ_ZERO) >= KEEP_EVERY) await places.keep(pair, place, signal)
  }
}

/** Marks of documents that do not wait, or are listed by the index. */
const MARKS = ['handled', 'parked', 'claim', 'retry_at'] as const

const waitingIn = ({ type, state }: TypeAndState): Selection => ({
  selector: {
    type,
    state,
    $or: [
      { docstate: { $exists: false } },
      { 'docstate.state': { $ne: state } },
      { $and: MARKS.map((mark) => ({ [`docstate.${mark}`]: { $exists: false } })) },
    ],
  },
  matches(doc) {
    const docstate = docstateOf(doc)
    return doc.type === type && doc.state === state && MARKS.every((mark) => docstate?.[mark] === undefined)
  },
})
