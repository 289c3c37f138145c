import type { Doc } from '../couch/documents.ts'

/** Data that workers exchange in their heartbeats. It costs no extra request. */
export class HeartbeatPayload {
  /** Returns the fields that this process adds to its heartbeats, as JSON. Keep them small. */
  fieldsToSend: () => Readonly<Record<string, unknown>> = () => ({})
  #received: ReadonlyMap<string, Doc> = new Map()

  /** Last heartbeats by worker id. Their fields are unchecked. */
  get received(): ReadonlyMap<string, Doc> {
    return this.#received
  }

  receive(beats: ReadonlyMap<string, Doc>): void {
    this.#received = beats
  }
}
