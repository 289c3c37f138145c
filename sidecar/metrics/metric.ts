import type { Histogram } from '../core/histogram.ts'

/** One metric; its name stands beside it in the group. */
export interface Metric<L extends string = string> {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly unit: string
  /** What it tells, in a sentence without quotes. */
  readonly meaning: string
  /** The file whose part keeps the number. */
  readonly from: string
  /** Its own labels, beside those of the group, with what they may be. */
  readonly labels: Readonly<Record<L, string>>
}

/** A number of a metric, or of a histogram the durations, with all its labels. */
export type Sample<L extends string = string> = readonly [
  value: number | Histogram,
  labels: Readonly<Record<L, string>>,
]

/** Metrics that are read together from one source `S`: the part that keeps their numbers. */
export interface MetricGroup<S = never, N extends string = string> {
  readonly title: string
  /** Before each name. */
  readonly prefix: string
  /** Labels that all of them have. */
  readonly labels: Readonly<Record<string, string>>
  readonly metrics: Readonly<Record<N, Metric>>
  /** The values now. Only reads what the source keeps. */
  readonly read: (source: S) => Readings<Record<N, Metric>> | Promise<Readings<Record<N, Metric>>>
}

/** A group with its source: what a feature offers for `GET /metrics`. */
export type Metrics = MetricGroup<void>

export const metricsOf = <S>(group: MetricGroup<S>, source: S): Metrics => ({
  ...group,
  read: () => group.read(source),
})

type LabelsIn<M> = M extends Metric<infer L> ? L : never
type Readings<M, L extends string = string> = { readonly [N in keyof M]: readonly Sample<L | LabelsIn<M[N]>>[] }

interface Definition<S, L extends string, M> {
  readonly title: string
  readonly prefix?: string
  readonly labels?: Readonly<Record<L, string>>
  readonly metrics: M
  readonly read: (source: S) => Readings<M, L> | Promise<Readings<M, L>>
}

/** Does not compile where a metric is described and not read, or read without one of its labels. */
export const defineMetrics = <S, M extends Readonly<Record<string, Metric<never>>>, L extends string = never>(
  definition: Definition<S, L, M>,
): MetricGroup<S> => ({ prefix: 'couchdb_sidecar_', labels: {}, ...definition })

/** The sample of a metric without labels; none while the number is unknown. */
export const one = (value: number | undefined): readonly Sample<never>[] => (value === undefined ? [] : [[value, {}]])

const define =
  (type: Metric['type']) =>
  <L extends string = never>(
    unit: string,
    meaning: string,
    from: string,
    labels = {} as Readonly<Record<L, string>>,
  ): Metric<L> => ({ type, unit, meaning, from, labels })

export const counter = define('counter')
export const gauge = define('gauge')
export const histogram = define('histogram')
