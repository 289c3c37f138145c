/**
 * Lists documents for handlers with `since: 'now'`: those that entered their state, or changed in it, after the handler
 * began. A document does not record that time, but the feed does: such documents changed after a checkpoint.
 *
 * Documents that changed before the checkpoint are left alone. The server's filter lists the waiting documents that
 * changed after it. Once all of them are done, the checkpoint moves on. So a list costs only the changes since then.
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

/**
 * Whether a document is unchanged since the handler began; undefined if no worker has had it yet. Throws `CouchError`.
 */
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

/** Lists the waiting documents that changed after their handler's checkpoint. Throws `CouchError`. */
export type ListSince = (pair: TypeAndState, signal: AbortSignal) => AsyncGenerator<Listed[]>

/** Documents that waited when a list had reached `seq`. Once none of them waits, the checkpoint moves to `seq`. */
interface Ahead {
  readonly seq: Seq
  readonly ids: ReadonlySet<string>
}

/** Maximum ids to remember: if more wait, the checkpoint does not move. */
const MOST_IDS = 20_000
/** The checkpoint is stored again when the next list would reread this many changes. */
const KEEP_EVERY = 1000

export function createListSince(places: FeedPlaces, selectedChanges: SelectedChanges): ListSince {
  const aheadOf = new WeakMap<Place, Ahead>()

  /** Moves the checkpoint after a list that reached `seq` and found these ids. */
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

/** Fields of documents that do not wait, or that the index lists. */
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
