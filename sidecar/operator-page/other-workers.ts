/**
 * Data of other workers for a page. Workers send it with their heartbeats while a page of any worker is open. At other
 * times, workers send and request nothing.
 */
import { isoTime, type Clock } from '../core/clock.ts'
import type { Doc } from '../couch/documents.ts'
import type { HeartbeatPayload } from '../workers/heartbeat-payload.ts'

/** Data in another worker's last heartbeat, of any shape. */
export interface Received {
  readonly worker: string
  readonly data: Doc
}

export interface OtherWorkersOptions {
  readonly payload: HeartbeatPayload
  /** Id of this worker. */
  readonly self: string
  readonly clock: Clock
  /** Data that this worker sends while a page of another worker is open: small, JSON. */
  readonly dataToSend: () => object
  /** Requests to the other workers while a page of this worker is open. */
  readonly requestsToSend: () => object
  /** Called with each heartbeat, for each worker with an open page: its data may hold a request. */
  readonly onRequest: (data: Doc) => void
}

/** How long a page counts as open after its last request, milliseconds. */
const LOOKED_MS = 60_000

export class OtherWorkers {
  readonly #options: OtherWorkersOptions
  #lookedAt = -Infinity

  constructor(options: OtherWorkersOptions) {
    this.#options = options
    options.payload.fieldsToSend = () => this.#fieldsToSend()
  }

  /** Marks a page of this worker as open. After the first call, the other workers start to send within seconds. */
  look(): readonly Received[] {
    this.#lookedAt = this.#options.clock.ticks()
    return this.#received()
  }

  #received(): readonly Received[] {
    const { payload, self } = this.#options
    return [...payload.received].flatMap(([worker, data]) => (worker === self ? [] : { worker, data }))
  }

  #fieldsToSend(): Readonly<Record<string, unknown>> {
    const { clock, dataToSend, requestsToSend, onRequest } = this.#options
    const looking = this.#received().filter(({ data }) => clock.now() - Date.parse(String(data.looked_at)) < LOOKED_MS)
    for (const { data } of looking) onRequest(data)
    const isLooked = clock.ticks() - this.#lookedAt < LOOKED_MS
    return {
      ...(isLooked && { looked_at: isoTime(clock.now()), ...requestsToSend() }),
      ...(looking.length > 0 && dataToSend()),
    }
  }
}
