import type { Logger } from 'pino'
import { isoTime, type Clock } from '../core/clock.ts'
import { docstateOf } from './assess.ts'
import { withDocstate } from './documents.ts'
import type { Fly } from './fly.ts'
import type { Store } from './store.ts'

export interface StampOptions {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
}

/** Writes down when a state ends, where nobody has: so it ends on time whoever runs then. */
export function createStamp({ store, clock, log }: StampOptions): (afterMs: number) => Fly {
  return (afterMs) => async (flight) => {
    const { id, doc } = flight
    const docstate = { ...docstateOf(doc), state: String(doc.state), timeout_at: isoTime(clock.now() + afterMs) }
    const outcome = await store(flight, withDocstate(doc, docstate))
    if (outcome.kind !== 'refused') return 'settled'
    log.warn({ doc: id, ...outcome.failure }, 'CouchDB refuses to have the end of a state written down')
    return 'not-taken'
  }
}
