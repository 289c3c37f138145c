/**
 * Numbers of the last hour and the last day, in coarse steps. Each worker keeps its numbers in memory; a page adds up
 * those of all workers (`other-workers.ts`). Nothing is stored.
 */
import { Histogram } from '../core/histogram.ts'
import type { Clock } from '../core/clock.ts'
import { samplesOf, type Metrics } from '../metrics/metric.ts'
import { isObject } from '../../ddocs/lib/document.ts'
import type { Received } from './other-workers.ts'

/**
 * One step of time. The first four numbers and the mails are sums over the step, the others maxima. `done`, `failed`:
 * runs. `ms`, `waitMs`: their total run time and the total wait of their documents, milliseconds. `waiting`: documents.
 * `behind`, `indexLag`: seconds that feeds and indexes are behind. `mailsFailed`: failed attempts to send.
 */
export type Point = readonly [
  ...(readonly [done: number, failed: number, ms: number, waitMs: number, waiting: number, behind: number]),
  ...(readonly [mailsSent: number, mailsFailed: number, indexLag: number]),
]

/** Consecutive points, the first `from` steps after 1970. */
export interface Line {
  readonly from: number
  readonly points: readonly Point[]
}

export interface Lines {
  readonly hour: Line
  readonly day: Line
}

const NONE: Point = [0, 0, 0, 0, 0, 0, 0, 0, 0]
const COUNTERS = [true, true, true, true, false, false, true, true, false]
export const STEPS = { hour: { ms: 60_000, count: 60 }, day: { ms: 1_800_000, count: 48 } } as const
type Span = keyof typeof STEPS
const SPANS = ['hour', 'day'] as const

/** Counters since the start of this worker; the other numbers are current values. */
type Sample = Point

export interface SeriesOptions {
  /** Metrics of all features. */
  readonly metrics: () => readonly Metrics[]
  /** Id of this worker. */
  readonly self: string
  readonly clock: Clock
}

interface Combined {
  readonly lines: Lines
  /** By id of the worker. */
  readonly workers: ReadonlyMap<string, Lines>
}

export class Series {
  readonly #options: SeriesOptions
  readonly #own: Record<Span, Map<number, Point>> = { hour: new Map(), day: new Map() }
  #before: Sample | undefined
  #taking: Promise<void> | undefined

  constructor(options: SeriesOptions) {
    this.#options = options
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

  /** Adds what happened since the last sample. Concurrent calls share one sample. */
  async take(): Promise<void> {
    this.#taking ??= this.#sample().finally(() => (this.#taking = undefined))
    await this.#taking
  }

  async #sample(): Promise<void> {
    const now = await sampleOf(this.#options.metrics())
    const before = this.#before ?? now
    this.#before = now
    const point = now.map((value, at) => (COUNTERS[at] ? Math.max(0, value - before[at]!) : value)) as unknown as Point
    const at = this.#options.clock.now() - 1 // in the minute that has ended
    for (const span of SPANS) {
      const step = Math.floor(at / STEPS[span].ms)
      const own = this.#own[span]
      own.set(step, added(own.get(step) ?? NONE, point, Math.max))
      for (const old of own.keys()) if (old <= step - STEPS[span].count) own.delete(old)
    }
  }

  /** Returns the sum of all workers until now, and the lines of each that has sent them. */
  async with(received: readonly Received[]): Promise<Combined> {
    await this.take()
    const workers = new Map([[this.#options.self, this.lines]])
    for (const { worker, data } of received) {
      const lines = linesFrom(data.series)
      if (lines) workers.set(worker, lines)
    }
    return { lines: addUp([...workers.values()], this.#options.clock.now()), workers }
  }

  /** Lines of this worker. */
  get lines(): Lines {
    const now = this.#options.clock.now()
    return { hour: lineOf('hour', this.#own.hour, now), day: lineOf('day', this.#own.day, now) }
  }
}

/** Combines two points. Waiting documents of two workers are added; of one worker's two times, the higher counts. */
const added = (one: Point, other: Point, waiting = (a: number, b: number) => a + b): Point => [
  one[0] + other[0],
  one[1] + other[1],
  one[2] + other[2],
  one[3] + other[3],
  waiting(one[4], other[4]),
  Math.max(one[5], other[5]),
  one[6] + other[6],
  one[7] + other[7],
  Math.max(one[8], other[8]),
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

/** The lines that another worker sent; undefined if the value has another shape. */
function linesFrom(value: unknown): Lines | undefined {
  const isLine = (line: unknown): line is Line =>
    isObject(line) &&
    Number.isSafeInteger(line.from) &&
    Array.isArray(line.points) &&
    line.points.length <= STEPS.hour.count &&
    line.points.every((point) => Array.isArray(point) && point.length === NONE.length && point.every(Number.isFinite))
  return isObject(value) && isLine(value.hour) && isLine(value.day) ? { hour: value.hour, day: value.day } : undefined
}

const WANTED = [
  ...(['handler_runs_total', 'handler_duration_seconds', 'handler_wait_seconds'] as const),
  ...(['handler_waiting', 'feed_behind_seconds', 'mails_sent_total', 'mails_failed_total'] as const),
  ...(['indexes_worst_lag_seconds'] as const),
]

async function sampleOf(groups: readonly Metrics[]): Promise<Sample> {
  const samples = await samplesOf(groups, WANTED)
  const numbers = (name: (typeof WANTED)[number]) =>
    samples[name].map(([value]) => (value instanceof Histogram ? value.sumMs : value))
  const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0)
  const runs = (...outcomes: readonly string[]) =>
    sum(samples.handler_runs_total.map(([value, { outcome = '' }]) => (outcomes.includes(outcome) ? Number(value) : 0)))
  return [
    runs('next', 'nothing'),
    runs('failed', 'rejected'),
    sum(numbers('handler_duration_seconds')),
    sum(numbers('handler_wait_seconds')),
    sum(numbers('handler_waiting')),
    Math.max(0, ...numbers('feed_behind_seconds')),
    sum(numbers('mails_sent_total')),
    sum(numbers('mails_failed_total')),
    Math.max(0, ...numbers('indexes_worst_lag_seconds')),
  ]
}
