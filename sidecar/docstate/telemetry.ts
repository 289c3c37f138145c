import type { Failure } from '../core/errors.ts'
import type { Channel, Events } from '../events/channels.ts'
import type { EventMap, OfDocument } from '../events/map.ts'
import { docstateOf } from './classify.ts'
import { Counters } from './counters.ts'
import { failedTries, type Attempt } from './attempt.ts'

/** What the engine of one database tells its subscribers. */
export interface Telemetry {
  readonly database: string
  /** How often it has done what, with or without subscribers. */
  readonly counts: Counters
  /** The channel, if it has a subscriber. One look-up: what stands behind `?.` is not made without one. */
  channel<K extends keyof EventMap>(name: K): Channel<EventMap[K]> | undefined
  /** What every event says of a document. */
  of(attempt: Attempt): OfDocument
  /** An attempt's document was written: tells, and counts, what it says became of it. */
  written(attempt: Attempt): void
}

export function createTelemetry(events: Events, database: string, counts = new Counters()): Telemetry {
  const of = ({ id, registration: { type, state } }: Attempt): OfDocument => ({ database, id, type, state })

  function written(attempt: Attempt): void {
    const { doc, registration } = attempt
    const { written } = counts.of(registration)
    const docstate = docstateOf(doc)
    const failure = docstate?.failed_in === undefined ? docstate?.failure : (doc.error as Failure)
    if (docstate?.parked) {
      written.parked += 1
      events.channel('document:parked')?.publish({ ...of(attempt), reason: docstate.parked.reason })
    } else if (failure && docstate?.handled === undefined) {
      written[docstate?.retry_at === undefined ? 'error' : 'retry'] += 1
      const { code, reason } = failure
      const attempts = failedTries(docstate)
      events
        .channel('document:failed')
        ?.publish({ ...of(attempt), code, reason, attempts, retry_at: docstate?.retry_at ?? null })
    } else {
      written.saved += 1
      events.channel('document:saved')?.publish({ ...of(attempt), next: String(doc.state), rev: doc._rev })
    }
  }

  return { database, counts, channel: (name) => events.channel(name), of, written }
}
