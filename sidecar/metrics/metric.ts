import type { Histogram } from '../core/histogram.ts'
import type { Sources } from './sources.ts'

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

/** Metrics that are read together. */
export interface Group<N extends string = string> {
  readonly title: string
  /** Before each name. */
  readonly prefix: string
  /** That all of them have. */
  readonly labels: Readonly<Record<string, string>>
  readonly metrics: Readonly<Record<N, Metric>>
  /** What they are now. Only looks at what others keep. */
  readonly read: (sources: Sources) => Readings<Record<N, Metric>> | Promise<Readings<Record<N, Metric>>>
}

type LabelsIn<M> = M extends Metric<infer L> ? L : never
type Readings<M, L extends string = string> = { readonly [N in keyof M]: readonly Sample<L | LabelsIn<M[N]>>[] }

interface Definition<L extends string, M> {
  readonly title: string
  readonly prefix?: string
  readonly labels?: Readonly<Record<L, string>>
  readonly metrics: M
  readonly read: (sources: Sources) => Readings<M, L> | Promise<Readings<M, L>>
}

/** Does not compile where a metric is described and not read, or read without one of its labels. */
export const defineGroup = <M extends Readonly<Record<string, Metric<never>>>, L extends string = never>(
  definition: Definition<L, M>,
): Group => ({ prefix: 'couchdb_sidecar_', labels: {}, ...definition })

/** Of a metric without labels; none where nobody knows the number. */
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
