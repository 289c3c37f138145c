/**
 * What happened in the last hour and day, in coarse steps: each worker keeps its own in memory, and tells it with its heartbeats
 * while someone looks at a page of any worker. Nothing is stored, and nothing is asked while no one looks.
 */
import { Histogram } from '../core/histogram.ts'
import { isoTime, type Clock } from '../core/clock.ts'
import type { Metrics } from '../metrics/metric.ts'
import type { HeartbeatPayload } from '../workers/heartbeat-payload.ts'
import { isObject } from '../../ddocs/lib/document.ts'

/** Of one step of time: runs that ended well, that failed; how long they took, ms in all; most that waited; seconds behind, at most. */
export type Point = readonly [done: number, failed: number, ms: number, waiting: number, behind: number]

/** Points one after the other, the first `from` steps after 1970. */
export interface Line {
  readonly from: number
  readonly points: readonly Point[]
}

export interface Lines {
  readonly hour: Line
  readonly day: Line
}

const NONE: Point = [0, 0, 0, 0, 0]
export const STEPS = { hour: { ms: 60_000, count: 60 }, day: { ms: 1_800_000, count: 48 } } as const
type Span = keyof typeof STEPS
const SPANS = ['hour', 'day'] as const

/** After the last page was asked for. */
const LOOKED_MS = 60_000

/** Of counters the sums until now, of the rest what is now. */
type Sample = Point

export interface SeriesOptions {
  /** Of all features. */
  readonly metrics: () => readonly Metrics[]
  readonly payload: HeartbeatPayload
  /** Id of this worker. */
  readonly self: string
  readonly clock: Clock
}

export class Series {
  readonly #options: SeriesOptions
  readonly #own: Record<Span, Map<number, Point>> = { hour: new Map(), day: new Map() }
  #before: Sample | undefined
  #lookedAt = -Infinity

  constructor(options: SeriesOptions) {
    this.#options = options
    options.payload.tell = () => this.#told()
  }

  /** Takes a sample each minute, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    const { ms } = STEPS.hour
    while (!signal.aborted) {
      await this.take()
      await clock.sleep(ms - (clock.now() % ms), signal).catch(() => undefined)
    }
  }

  async take(): Promise<void> {
    const now = await sampleOf(this.#options.metrics())
    const before = this.#before ?? now
    this.#before = now
    const [done, failed, ms] = now.map((sum, at) => Math.max(0, sum - before[at]!)) as unknown as Point
    const at = this.#options.clock.now() - 1 // of the minute that has ended
    for (const span of SPANS) {
      const step = Math.floor(at / STEPS[span].ms)
      const own = this.#own[span]
      own.set(step, added(own.get(step) ?? NONE, [done, failed, ms, now[3], now[4]], Math.max))
      for (const old of own.keys()) if (old <= step - STEPS[span].count) own.delete(old)
    }
  }

  /** Of all workers together, as far as they have told. The first look lets the others tell, within some seconds. */
  look(): { readonly lines: Lines; readonly workers: number } {
    const { payload, self, clock } = this.#options
    this.#lookedAt = clock.ticks()
    const others = [...payload.heard].flatMap(([id, beat]) => (id === self ? [] : (linesFrom(beat.series) ?? [])))
    return { lines: addUp([this.#lines(), ...others], clock.now()), workers: 1 + others.length }
  }

  #told() {
    const { payload, self, clock } = this.#options
    const isLooked = clock.ticks() - this.#lookedAt < LOOKED_MS
    const others = [...payload.heard].filter(([id]) => id !== self)
    const isWanted = others.some(([, { looked_at: at }]) => clock.now() - Date.parse(String(at)) < LOOKED_MS)
    return {
      ...(isLooked && { looked_at: isoTime(clock.now()) }),
      ...(isWanted && { series: this.#lines() }),
    }
  }

  #lines(): Lines {
    const now = this.#options.clock.now()
    return { hour: lineOf('hour', this.#own.hour, now), day: lineOf('day', this.#own.day, now) }
  }
}

/** Of two workers numbers are added, but for how far they are behind; in one worker's time, what waits is the most, too. */
const added = (one: Point, other: Point, waiting = (a: number, b: number) => a + b): Point => [
  one[0] + other[0],
  one[1] + other[1],
  one[2] + other[2],
  waiting(one[3], other[3]),
  Math.max(one[4], other[4]),
]

function lineOf(span: Span, known: ReadonlyMap<number, Point>, now: number): Line {
  const { ms, count } = STEPS[span]
  const from = Math.floor(now / ms) - count + 1
  return { from, points: Array.from({ length: count }, (_, at) => known.get(from + at) ?? NONE) }
}

function addUp(all: readonly Lines[], now: number): Lines {
  const sum = (span: Span) => {
    const sums = new Map<number, Point>()
    for (const { [span]: line } of all)
      for (const [at, point] of line.points.entries())
        sums.set(line.from + at, added(sums.get(line.from + at) ?? NONE, point))
    return lineOf(span, sums, now)
  }
  return { hour: sum('hour'), day: sum('day') }
}

/** What another worker has told; undefined where it is none. */
function linesFrom(told: unknown): Lines | undefined {
  const isLine = (line: unknown): line is Line =>
    isObject(line) &&
    Number.isSafeInteger(line.from) &&
    Array.isArray(line.points) &&
    line.points.length <= STEPS.hour.count &&
    line.points.every((point) => Array.isArray(point) && point.length === NONE.length && point.every(Number.isFinite))
  return isObject(told) && isLine(told.hour) && isLine(told.day) ? { hour: told.hour, day: told.day } : undefined
}

async function sampleOf(groups: readonly Metrics[]): Promise<Sample> {
  const readings = new Map<string, readonly (readonly [number | Histogram, Readonly<Record<string, string>>])[]>()
  for (const group of groups) {
    if (!WANTED.some((name) => name in group.metrics)) continue
    for (const [name, samples] of Object.entries(await group.read())) readings.set(name, samples)
  }
  const numbers = (name: (typeof WANTED)[number], isMeant = (_labels: Readonly<Record<string, string>>) => true) =>
    (readings.get(name) ?? []).flatMap(([value, labels]) =>
      isMeant(labels) ? [value instanceof Histogram ? value.sumMs : value] : [],
    )
  const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0)
  const runs = (...outcomes: readonly string[]) =>
    sum(numbers('handler_runs_total', ({ outcome = '' }) => outcomes.includes(outcome)))
  return [
    runs('next', 'nothing'),
    runs('failed', 'rejected'),
    sum(numbers('handler_duration_seconds')),
    sum(numbers('handler_waiting')),
    Math.max(0, ...numbers('feed_behind_seconds')),
  ]
}

const WANTED = ['handler_runs_total', 'handler_duration_seconds', 'handler_waiting', 'feed_behind_seconds'] as const
