/** The last events that matter to an operator, since the first look at a page. */
import { z } from 'zod'
import { isoTime, type Clock } from '../core/clock.ts'
import type { Events } from '../events/channels.ts'
import type { EventMap } from '../events/map.ts'
import { documentPath } from './layout.tsx'
import type { Received } from './other-workers.ts'

const RecentEvent = z.object({
  /** ISO 8601. */
  at: z.iso.datetime(),
  text: z.string(),
  /** Page with details: never another site, nor a script. */
  path: z.string().startsWith('/document?').optional(),
})

export type RecentEvent = Readonly<z.infer<typeof RecentEvent>> & {
  /** Worker of the event; undefined: this one. */
  readonly worker?: string
}

const SentEvents = z.array(RecentEvent)

export interface RecentEventsOptions {
  readonly events: Events
  readonly clock: Clock
  /** Aborts when the sidecar stops. */
  readonly signal: AbortSignal
}

const KEPT = 20
/** Maximum length in characters: texts travel with heartbeats. */
const MOST_CHARACTERS = 200
/** How long events are recorded after the last request for a page, milliseconds. */
const LOOKED_MS = 60_000

type InWords = Pick<RecentEvent, 'text' | 'path'>
type Words = { readonly [K in keyof EventMap]?: (event: EventMap[K]) => InWords }

const ofDocument = ({ database, id }: { database: string; id: string }, what: string): InWords => ({
  text: `${id} in ${database} ${what}`,
  path: documentPath(database, id),
})

/** Texts of the events, without addresses of people. */
const WORDS: Words = {
  'document:failed': (event) =>
    ofDocument(
      event,
      `${event.retry_at === null ? 'failed for good' : 'failed and will be tried again'}: ${event.code}: ${event.reason}`,
    ),
  'document:parked': (event) => ofDocument(event, `is parked until you decide: ${event.reason}`),
  'claim:inherited': (event) => ofDocument(event, `was taken over from ${event.worker}, which did not renew its claim`),
  'feed:broken': ({ database, code }) => ({ text: `The feed of ${database} broke: ${code}` }),
  'feed:connected': ({ database }) => ({ text: `The feed of ${database} is connected` }),
  'feed:restarted': ({ database, why }) => ({ text: `${database} is read again from its start: ${why}` }),
  'index:failed': ({ database, ddoc, code }) => ({
    text: `An index of ${ddoc} in ${database} cannot be built: ${code}`,
  }),
  'mail:failed': ({ code, reason }) => ({ text: `A mail was not sent: ${code}: ${reason}` }),
}

/** Each worker notices these events by itself. */
const OF_ALL: Words = {
  'settings:changed': ({ part }) => ({ text: `The settings of ${part} have changed` }),
  'worker:joined': ({ worker }) => ({ text: `The worker ${worker} has joined` }),
  'worker:left': ({ worker }) => ({ text: `The worker ${worker} has left` }),
}

interface Kept extends RecentEvent {
  readonly isOfAll: boolean
}

export class RecentEvents {
  readonly #options: RecentEventsOptions
  #kept: Kept[] = []
  #lookedAt = -Infinity
  #listening: AbortController | undefined

  constructor(options: RecentEventsOptions) {
    this.#options = options
  }

  /** Returns the events of all workers, newest first. The first call starts the recording. */
  with(received: readonly Received[]): readonly RecentEvent[] {
    const others = received.flatMap(({ worker, data: { events } }) => {
      const { data = [] } = SentEvents.safeParse(events)
      return data.map((event) => ({ ...event, worker }))
    })
    return [...this.#look(), ...others].sort((one, other) => other.at.localeCompare(one.at)).slice(0, KEPT)
  }

  /** Returns shortened events that other workers cannot know. The first call starts the recording. */
  toSend(): readonly RecentEvent[] {
    return this.#look().flatMap(({ isOfAll, ...event }) =>
      isOfAll ? [] : { ...event, text: event.text.slice(0, MOST_CHARACTERS) },
    )
  }

  #look(): readonly Kept[] {
    this.#lookedAt = this.#options.clock.ticks()
    if (!this.#listening) void this.#listen()
    return this.#kept
  }

  async #listen(): Promise<void> {
    const { events, clock, signal } = this.#options
    const listening = (this.#listening = new AbortController())
    for (const [name, words] of Object.entries({ ...WORDS, ...OF_ALL })) {
      const inWords = words as (event: unknown) => InWords
      events.subscribe(name, ({ event }) => this.#keep({ ...inWords(event), isOfAll: name in OF_ALL }), {
        signal: listening.signal,
      })
    }
    for (let leftMs = LOOKED_MS; leftMs > 0 && !signal.aborted; leftMs = this.#lookedAt + LOOKED_MS - clock.ticks())
      await clock.sleep(leftMs, signal).catch(() => undefined)
    listening.abort(new Error('no one looks any more'))
    this.#listening = undefined
    this.#kept = []
  }

  #keep(event: Omit<Kept, 'at'>): void {
    this.#kept = [{ ...event, at: isoTime(this.#options.clock.now()) }, ...this.#kept].slice(0, KEPT)
  }
}
