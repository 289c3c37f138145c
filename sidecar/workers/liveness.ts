import type { Doc, StoredDoc } from '../couch/documents.ts'
import { beatId, memberFrom } from './worker-documents.ts'

interface Seen {
  readonly rev: string
  /** The last heartbeat that is not our own. Undefined if there was none. */
  readonly beat: string | undefined
  /** Whether it has changed since we look: what was there before may be what a dead process left. */
  readonly moved: boolean
  readonly stillMs: number
  readonly timeoutMs: number
}

/**
 * The heartbeats that other processes give, as one look after the other finds them. Who gives none for its whole
 * timeout is silent: by our clock that never jumps, times that others wrote are never compared with ours.
 *
 * Between two looks no worker was seen, so that this counts for no more than the third of the timeout in which there should
 * have been a sign. A slow CouchDB delays what is found out, and prevents nothing. After a look that failed (`forget`)
 * all counts from the beginning: CouchDB was away, and for the others too.
 */
export class Liveness {
  readonly #ticks: () => number
  /** Ours. */
  readonly #process: string
  #seen: ReadonlyMap<string, Seen> = new Map()
  #lookedAt = 0
  #failed = false

  constructor(ticks: () => number, process: string) {
    this.#ticks = ticks
    this.#process = process
  }

  /** Takes in one reading: all documents of members, and the heartbeats beside them. Who is not in it is forgotten. */
  look(docs: readonly StoredDoc[], beats: ReadonlyMap<string, Doc>): void {
    const now = this.#ticks()
    const sinceMs = this.#failed ? 0 : now - this.#lookedAt
    this.#lookedAt = now
    this.#failed = false
    this.#seen = new Map(docs.map((doc) => [doc._id, this.#see(doc, beats.get(beatId(doc._id)), sinceMs)]))
  }

  #see(doc: StoredDoc, found: Doc | undefined, sinceMs: number): Seen {
    const before = this.#seen.get(doc._id)
    const { timeoutMs } = memberFrom(doc)
    // Our own says nothing of the other process of this name, over whose sign it was written.
    const beat = found && found.process !== this.#process ? JSON.stringify(found) : before?.beat
    const seen = { rev: doc._rev, beat, timeoutMs }
    if (!before) return { ...seen, moved: false, stillMs: 0 }
    const moved = before.moved || before.beat !== beat
    const isStill = before.rev === doc._rev && before.beat === beat
    return { ...seen, moved, stillMs: isStill ? before.stillMs + Math.min(sinceMs, timeoutMs / 3) : 0 }
  }

  /** A look failed. Who lives is known all the same; how long the others were silent is not. */
  forget(): void {
    this.#seen = new Map([...this.#seen].map(([id, seen]) => [id, { ...seen, stillMs: 0 }]))
    this.#failed = true
  }

  /** No other process has given a heartbeat for the whole timeout. */
  isSilent(id: string): boolean {
    const seen = this.#seen.get(id)
    return seen !== undefined && seen.stillMs >= seen.timeoutMs
  }

  /** Another process was seen to write heartbeats, and is not silent. Neither is known at first. */
  isAlive(id: string): boolean {
    return this.#seen.get(id)?.moved === true && !this.isSilent(id)
  }
}
