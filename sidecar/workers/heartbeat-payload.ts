import type { Doc } from '../couch/documents.ts'

/** What workers tell each other along with their heartbeats, which they write and read anyway: it costs no request. */
export class HeartbeatPayload {
  /** What this process adds to its heartbeats. Keep it small: JSON. */
  tell: () => Readonly<Record<string, unknown>> = () => ({})
  #heard: ReadonlyMap<string, Doc> = new Map()

  /** What was last heard, by the ids of the workers: anything may stand there. */
  get heard(): ReadonlyMap<string, Doc> {
    return this.#heard
  }

  hear(beats: ReadonlyMap<string, Doc>): void {
    this.#heard = beats
  }
}
