/**
 * The databases that globs stand for, each visited when something happens in it. Events make a visit sooner, the sweep
 * makes it sure: see docs/designs/many-databases.md.
 */
import type { Logger } from 'pino'
import type { Random } from '../core/backoff.ts'
import type { Clock } from '../core/clock.ts'
import { isAmong } from '../core/glob.ts'
import { Queue } from '../core/queue.ts'
import { Slots } from '../core/slots.ts'
import { together } from '../core/together.ts'
import { within } from '../core/within.ts'
import type { Couch } from '../couch/client.ts'
import { CouchError } from '../couch/errors.ts'
import { Strikes } from '../couch/strikes.ts'
import { createSweeps } from '../couch/sweeps.ts'
import { placesOf, type DispatchTable } from '../docstate/assess.ts'
import type { Counts } from '../docstate/counts.ts'
import type { Engine } from '../docstate/engine.ts'
import type { Events } from '../events/channels.ts'
import { Bell } from '../feed/bell.ts'
import type { FleetReading } from '../metrics/sources.ts'
import type { Sharing } from '../workers/sharing.ts'
import { createBerth, forgetPlace, type Berth } from './berth.ts'
import { WHO_IS_THERE_MS } from './follow.ts'
import { ownerOf } from './owner.ts'
import { createSweep } from './sweep.ts'
import { visit, type VisitOptions } from './visit.ts'

export interface FleetOptions extends Omit<
  VisitOptions,
  'name' | 'kind' | 'part' | 'slots' | 'owner' | 'isCrowded' | 'onEngine' | 'onRead' | 'counts' | 'sweepMs'
> {
  readonly couch: Couch
  /** Globs. */
  readonly databases: readonly string[]
  /** Names that are followed. */
  readonly except: ReadonlySet<string>
  readonly table: DispatchTable
  readonly sharing: Sharing
  /** Where `database:*` is told. */
  readonly events: Events
  /** Whether somebody tells it; otherwise all are looked at more often. */
  readonly areTold: () => boolean
  /** How many databases are read at once. */
  readonly reads: number
  /** Of the databases that are visited now. */
  readonly engines: Map<string, Engine>
  readonly countsOf: (database: string) => Counts
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Between two looks at all databases, milliseconds: with events, and without. Default a minute, five seconds. */
  readonly lookAgainMs?: readonly [told: number, untold: number]
}

export interface Fleet {
  /** Until the signal aborts, and everything is settled or given back. Once only. */
  run(signal: AbortSignal): Promise<void>
  counts(): FleetReading
}

/** An open visit costs some 40 KB. So many are open only where they wait for handlers. */
const MOST_OPEN = 1000
const AGAIN_MS = 5000

export function createFleet(options: FleetOptions): Fleet {
  const { couch, databases, except, table, sharing, events, areTold, reads, engines, countsOf } = options
  const { clock, random, log, lookAgainMs = [60_000, 5000] } = options
  const berths = new Map<string, Berth>()
  const told = new Queue()
  const found = new Queue()
  const slots = new Slots(() => reads)
  const strikes = new Strikes(clock)
  const places = placesOf(table)
  const owner = ownerOf(places)
  const underWay = new Set<Promise<void>>()
  let waiting = new AbortController()
  /** Visits that have not yet read anything. */
  let beginning = 0
  let taken = 0
  let mistake: { readonly thrown: unknown } | undefined
  let visits = 0
  let pages = 0
  let swept = 0
  let started = false

  const isOurs = (name: string) => {
    if (except.has(name) || !isAmong(name, databases)) return false
    const part = sharing.whole(name)
    return places.some((place) => part.isOurs(place, name))
  }
  const wake = () => waiting.abort()

  function tell(name: string): void {
    if (!isOurs(name)) return
    const berth = berths.get(name) ?? createBerth(name)
    berths.set(name, berth)
    if (berth.visit) return berth.visit.bell.ring()
    told.add(name)
    wake()
  }

  /** It may be another one of the same name now. */
  function renew(name: string): void {
    const berth = berths.get(name)
    if (berth) forgetPlace(berth)
    if (berth?.visit) berth.visit.again = true
    berth?.visit?.leave(new Error('the database was made again'))
    tell(name)
  }

  function forget(name: string): void {
    told.remove(name)
    found.remove(name)
    berths.get(name)?.visit?.leave(new Error(`${name} is not visited any more`))
    berths.delete(name)
  }

  /** Those of whom somebody has told go first, but never alone. */
  function next(): string | undefined {
    taken += 1
    const [first, second] = taken % 4 === 0 ? [found, told] : [told, found]
    return first.take() ?? second.take()
  }

  function open(name: string, signal: AbortSignal): void {
    const berth = berths.get(name)
    if (!berth || berth.visit) return
    const bell = new Bell()
    const leaving = new AbortController()
    berth.visit = { bell, leave: (reason) => leaving.abort(reason), again: false }
    const going = go(berth, bell, AbortSignal.any([signal, leaving.signal]))
      .catch((thrown: unknown) => void (mistake ??= { thrown }))
      .finally(() => {
        underWay.delete(going)
        wake()
      })
    underWay.add(going)
  }

  async function go(berth: Berth, bell: Bell, signal: AbortSignal): Promise<void> {
    const { name } = berth
    const child = log.child({ db: name })
    beginning += 1
    let isBeginning = true
    const onRead = () => {
      if (isBeginning) beginning -= 1
      isBeginning = false
    }
    try {
      const visited = await visit(
        berth,
        {
          ...options,
          ...{ name, kind: 'docstate', part: sharing.whole(name), slots, owner, counts: countsOf(name), log: child },
          isCrowded: () => told.size + found.size > 0,
          onEngine: (engine) => void engines.set(name, engine),
          onRead() {
            pages += 1
            onRead()
            wake()
          },
        },
        bell,
        signal,
      )
      visits += 1
      strikes.succeeded()
      if (visited.kind === 'missing') forgetPlace(berth)
      else if (visited.kind === 'broken') found.addAt(name, clock.ticks() + AGAIN_MS * (1 + random()))
      else if (visited.nextAt !== undefined) found.addAt(name, clock.ticks() + visited.nextAt - clock.now())
    } catch (thrown) {
      if (signal.aborted) return
      if (!(thrown instanceof CouchError)) throw thrown
      strikes.failed(thrown)
      child.debug({ code: thrown.code, reason: thrown.message }, 'the database could not be visited')
      found.addAt(name, clock.ticks() + AGAIN_MS * (1 + random()))
    } finally {
      onRead()
      engines.delete(name)
      const isToGoOn = bell.isRinging || berth.visit?.again
      berth.visit = undefined
      if (isToGoOn && !signal.aborted) tell(name)
    }
  }

  async function openAll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !mistake) {
      waiting = new AbortController()
      found.ripen(clock.ticks())
      while (underWay.size < MOST_OPEN && beginning < reads * 2 && strikes.restsUntil === undefined) {
        const name = next()
        if (name === undefined) break
        open(name, signal)
      }
      const at = Math.min(found.nextAt() ?? Infinity, strikes.restsUntil ?? Infinity)
      const pauseMs = Math.max(1, Math.min(60_000, at - clock.ticks()))
      await clock.sleep(pauseMs, AbortSignal.any([signal, waiting.signal])).catch(() => undefined)
    }
    await Promise.all(underWay)
    if (mistake) throw mistake.thrown
  }

  const sweep = createSweep({
    ...{ couch, berths, isOurs, renew, forget, log },
    find(name) {
      swept += 1
      const { visit } = berths.get(name)!
      if (visit) return visit.bell.ring()
      found.add(name)
      wake()
    },
  })
  const sweeps = createSweeps({ sweep, everyMs: () => lookAgainMs[areTold() ? 0 : 1], clock, random, log })

  return {
    async run(signal) {
      if (started) throw new Error('the fleet was started twice')
      started = true
      if (places.length === 0 || databases.length === 0) return
      await within(clock, WHO_IS_THERE_MS, sharing.known, signal).catch(() => undefined)
      events.subscribe('database:created', ({ event }) => renew(event.database), { signal })
      events.subscribe('database:updated', ({ event }) => tell(event.database), { signal })
      sharing.whole('').onChange(() => sweeps.soon(), signal)
      await together([openAll, (until) => sweeps.run(until)], signal)
    },
    counts: () => ({
      ...{ databases: berths.size, open: underWay.size, waiting: told.size + found.size, visits, reads: pages, swept },
    }),
  }
}
