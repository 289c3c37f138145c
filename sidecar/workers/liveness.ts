import type { Doc, StoredDoc } from '../couch/documents.ts'
import { beatId, memberFrom } from './worker-documents.ts'

interface Seen {
  readonly rev: string
  /** Last heartbeat of another process, as JSON; undefined if none. */
  readonly beat: string | undefined
  /** Whether the heartbeat has changed since the first look. A dead process may have left the first one. */
  readonly moved: boolean
  readonly stillMs: number
  readonly timeoutMs: number
}

/**
 * Heartbeats of other processes, as successive looks find them. A worker without a heartbeat for its whole timeout is
 * silent. Silence is measured by this process's monotonic clock, never by times that other processes wrote.
 *
 * A heartbeat is due every third of the timeout. So the time between two looks counts as at most a third. A slow
 * CouchDB delays detection, but does not prevent it. After a failed look (`forget`), silence is measured again from
 * zero: CouchDB was unavailable to the other workers, too.
 */
export class Liveness {
  readonly #ticks: () => number
  /** Id of this process. */
  readonly #process: string
  #seen: ReadonlyMap<string, Seen> = new Map()
  #lookedAt = 0
  #failed = false

  constructor(ticks: () => number, process: string) {
    this.#ticks = ticks
    this.#process = process
  }

  /** Records one look: the documents of all members, and their heartbeats. Missing members are forgotten. */
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
    // This process's heartbeat overwrites that of another process with the same name, and proves nothing about it.
    const beat = found && found.process !== this.#process ? JSON.stringify(found) : before?.beat
    const seen = { rev: doc._rev, beat, timeoutMs }
    if (!before) return { ...seen, moved: false, stillMs: 0 }
    const moved = before.moved || before.beat !== beat
    const isStill = before.rev === doc._rev && before.beat === beat
    return { ...seen, moved, stillMs: isStill ? before.stillMs + Math.min(sinceMs, timeoutMs / 3) : 0 }
  }

  /** Records a failed look: members known to be alive stay so, but the silence of all starts at zero. */
  forget(): void {
    this.#seen = new Map([...this.#seen].map(([id, seen]) => [id, { ...seen, stillMs: 0 }]))
    this.#failed = true
  }

  /** Whether other processes have written no heartbeat for the whole timeout. */
  isSilent(id: string): boolean {
    const seen = this.#seen.get(id)
    return seen !== undefined && seen.stillMs >= seen.timeoutMs
  }

  /** Whether another process was seen to write heartbeats and is not silent. At first, neither is known. */
  isAlive(id: string): boolean {
    return this.#seen.get(id)?.moved === true && !this.isSilent(id)
  }
}
