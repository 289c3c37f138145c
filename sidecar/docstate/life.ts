import type { Failure } from '../core/errors.ts'
import type { Channel, Events } from '../events/channels.ts'
import type { EventMap, OfDocument } from '../events/map.ts'
import { docstateOf } from './assess.ts'
import { failedTries, type Flight } from './flight.ts'

/** What the engine of one database tells of what it does, to whoever listens. */
export interface Life {
  readonly database: string
  /** The channel, if anybody listens. One look-up: what stands behind `?.` is not made for nobody. */
  channel<K extends keyof EventMap>(name: K): Channel<EventMap[K]> | undefined
  /** What every event says of a document. */
  of(flight: Flight): OfDocument
  /** A flight's document was written: tells what it says became of it. */
  written(flight: Flight): void
}

export function createLife(events: Events, database: string): Life {
  const of = ({ id, registration: { type, state } }: Flight): OfDocument => ({ database, id, type, state })

  function written(flight: Flight): void {
    const { doc } = flight
    const docstate = docstateOf(doc)
    const failure = docstate?.failed_in === undefined ? docstate?.failure : (doc.error as Failure)
    if (docstate?.parked) {
      events.channel('document:parked')?.publish({ ...of(flight), reason: docstate.parked.reason })
    } else if (failure && docstate?.handled === undefined) {
      const { code, reason } = failure
      const attempts = failedTries(docstate)
      events
        .channel('document:failed')
        ?.publish({ ...of(flight), code, reason, attempts, retry_at: docstate?.retry_at ?? null })
    } else {
      events.channel('document:saved')?.publish({ ...of(flight), next: String(doc.state), rev: doc._rev })
    }
  }

  return { database, channel: (name) => events.channel(name), of, written }
}
