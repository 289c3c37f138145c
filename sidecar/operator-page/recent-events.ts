/** What has happened in this worker since someone looks: events that a person wants to know of, the last of them. */
import { isoTime, type Clock } from '../core/clock.ts'
import type { Events } from '../events/channels.ts'
import type { EventMap } from '../events/map.ts'
import { documentPath } from './layout.tsx'

export interface RecentEvent {
  /** ISO 8601. */
  readonly at: string
  readonly text: string
  /** Where more is said of it. */
  readonly path?: string
}

export interface RecentEventsOptions {
  readonly events: Events
  readonly clock: Clock
  /** With which the sidecar ends. */
  readonly signal: AbortSignal
}

const KEPT = 20
/** After the last page was asked for, nothing is listened to any more. */
const LOOKED_MS = 60_000

type Told = Omit<RecentEvent, 'at'>
type Words = { readonly [K in keyof EventMap]?: (event: EventMap[K]) => Told }

const ofDocument = ({ database, id }: { database: string; id: string }, what: string): Told => ({
  text: `${id} in ${database} ${what}`,
  path: documentPath(database, id),
})

/** In words; addresses of people are not among them. */
const WORDS: Words = {
  'document:failed': (event) =>
    ofDocument(
      event,
      `${event.retry_at === null ? 'has failed for good' : 'failed, and is tried again'}: ${event.code}: ${event.reason}`,
    ),
  'document:parked': (event) => ofDocument(event, `waits for a person to decide: ${event.reason}`),
  'claim:inherited': (event) => ofDocument(event, `was taken over from ${event.worker}, which did not renew its claim`),
  'feed:broken': ({ database, code }) => ({ text: `The feed of ${database} is broken: ${code}` }),
  'feed:connected': ({ database }) => ({ text: `The feed of ${database} is read` }),
  'feed:restarted': ({ database, why }) => ({ text: `${database} is read again from its start: ${why}` }),
  'index:failed': ({ database, ddoc, code }) => ({
    text: `An index of ${ddoc} in ${database} cannot be built: ${code}`,
  }),
  'mail:failed': ({ code, reason }) => ({ text: `A mail was not taken: ${code}: ${reason}` }),
  'settings:changed': ({ part }) => ({ text: `The settings of ${part} have changed` }),
  'worker:joined': ({ worker }) => ({ text: `The worker ${worker} has come` }),
  'worker:left': ({ worker }) => ({ text: `The worker ${worker} has gone` }),
}

export class RecentEvents {
  readonly #options: RecentEventsOptions
  #kept: RecentEvent[] = []
  #lookedAt = -Infinity
  #listening: AbortController | undefined

  constructor(options: RecentEventsOptions) {
    this.#options = options
  }

  /** The last first. The first look begins to listen. */
  look(): readonly RecentEvent[] {
    this.#lookedAt = this.#options.clock.ticks()
    if (!this.#listening) void this.#listen()
    return this.#kept
  }

  async #listen(): Promise<void> {
    const { events, clock, signal } = this.#options
    const listening = (this.#listening = new AbortController())
    for (const [name, words] of Object.entries(WORDS))
      events.subscribe(name, ({ event }) => this.#keep((words as (event: unknown) => Told)(event)), {
        signal: listening.signal,
      })
    for (let leftMs = LOOKED_MS; leftMs > 0 && !signal.aborted; leftMs = this.#lookedAt + LOOKED_MS - clock.ticks())
      await clock.sleep(leftMs, signal).catch(() => undefined)
    listening.abort(new Error('no one looks any more'))
    this.#listening = undefined
    this.#kept = []
  }

  #keep(told: Told): void {
    this.#kept = [{ ...told, at: isoTime(this.#options.clock.now()) }, ...this.#kept].slice(0, KEPT)
  }
}
