import type { Failure } from '../core/errors.ts'
import type { Channel, Events } from '../events/channels.ts'
import type { EventMap, OfDocument } from '../events/map.ts'
import { docstateOf } from './classify.ts'
import { Counters } from './counters.ts'
import { entryKey, failedTries, type Attempt } from './attempt.ts'

/** Events and counters of the engine of one database. */
export interface Telemetry {
  readonly database: string
  /** Counters, which need no subscribers. */
  readonly counts: Counters
  /** The channel, if it has a subscriber. Use `?.`: without a subscriber, no event is built. */
  channel<K extends keyof EventMap>(name: K): Channel<EventMap[K]> | undefined
  /** The fields that every event of a document has. */
  of(attempt: Attempt): OfDocument
  /** Counts and publishes the outcome that an attempt's document records, after its write. */
  written(attempt: Attempt): void
}

/** @param ticks monotonic clock, milliseconds */
export function createTelemetry(
  events: Events,
  database: string,
  ticks: () => number,
  counts = new Counters(),
): Telemetry {
  const of = ({ id, registration: { type, state } }: Attempt): OfDocument => ({ database, id, type, state })

  /** Publishes the end of an entry. */
  function ended(attempt: Attempt, failure?: Failure): void {
    const { doc, registration } = attempt
    events.channel('entry:ended')?.publish({
      ...of(attempt),
      ...{
        next: String(doc.state),
        rev: doc._rev,
        key: entryKey(database, attempt),
        ms: attempt.tookMs ?? ticks() - attempt.beganAt,
      },
      mode: registration.byMachine === 'timeout' ? 'time' : registration.mode,
      attempts: failure ? failedTries(docstateOf(doc)) : failedTries(attempt.before),
      version: registration.options.version ?? null,
      ...{ code: failure?.code ?? null, reason: failure?.reason ?? null },
    })
  }

  function written(attempt: Attempt): void {
    const { doc, registration } = attempt
    const { written } = counts.of(registration)
    const docstate = docstateOf(doc)
    const failure = docstate?.failed_in === undefined ? docstate?.failure : (doc.error as Failure)
    const saved = () => {
      written.saved += 1
      events.channel('document:saved')?.publish({ ...of(attempt), next: String(doc.state), rev: doc._rev })
    }
    if (isRenamed(attempt)) saved()
    else if (docstate?.parked) {
      written.parked += 1
      events.channel('document:parked')?.publish({ ...of(attempt), reason: docstate.parked.reason })
    } else if (failure && docstate?.handled === undefined) {
      written[docstate?.retry_at === undefined ? 'error' : 'retry'] += 1
      const { code, reason } = failure
      const attempts = failedTries(docstate)
      events
        .channel('document:failed')
        ?.publish({ ...of(attempt), code, reason, attempts, retry_at: docstate?.retry_at ?? null })
      if (docstate?.retry_at === undefined) ended(attempt, failure)
    } else {
      saved()
      ended(attempt)
    }
  }

  return { database, counts, channel: (name) => events.channel(name), of, written }
}

/** Whether only the state's name changed: the entry continues. */
const isRenamed = ({ doc, registration: { byMachine, state } }: Attempt): boolean =>
  byMachine === 'rename' && doc.state !== state && docstateOf(doc)?.failed_in === undefined
