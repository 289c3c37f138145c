import type { Histogram } from '../core/histogram.ts'

/** One metric; the group holds its name. */
export interface Metric<L extends string = string> {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly unit: string
  /** A sentence without quotes. */
  readonly meaning: string
  /** File of the part that keeps the number. */
  readonly from: string
  /** Labels beside those of the group, with their possible values. */
  readonly labels: Readonly<Record<L, string>>
}

/** A value of a metric with all its labels. A histogram's value holds its durations. */
export type Sample<L extends string = string> = readonly [
  value: number | Histogram,
  labels: Readonly<Record<L, string>>,
]

/** Metrics that are read together from one source `S`: the part that keeps their numbers. */
export interface MetricGroup<S = never, N extends string = string> {
  readonly title: string
  /** Prefix of each name. */
  readonly prefix: string
  /** Labels that all metrics of the group have. */
  readonly labels: Readonly<Record<string, string>>
  readonly metrics: Readonly<Record<N, Metric>>
  /** Returns the current values. Only reads what the source keeps. */
  readonly read: (source: S) => Readings<Record<N, Metric>> | Promise<Readings<Record<N, Metric>>>
}

/** A group with its source: the part of a feature in `GET /metrics`. */
export type Metrics = MetricGroup<void>

export const metricsOf = <S>(group: MetricGroup<S>, source: S): Metrics => ({
  ...group,
  read: () => group.read(source),
})

/** Returns the samples of the named metrics (names without `PREFIX`). Reads only the groups that have one of them. */
export async function samplesOf<N extends string>(
  groups: readonly Metrics[],
  names: readonly N[],
): Promise<Readonly<Record<N, readonly Sample<string>[]>>> {
  const found = new Map<string, readonly Sample<string>[]>()
  for (const { prefix, metrics, read } of groups) {
    const nameOf = (own: string) => `${prefix}${own}`.slice(PREFIX.length)
    if (!Object.keys(metrics).some((own) => (names as readonly string[]).includes(nameOf(own)))) continue
    for (const [own, samples] of Object.entries(await read())) found.set(nameOf(own), samples)
  }
  return Object.fromEntries(names.map((name) => [name, found.get(name) ?? []])) as unknown as Readonly<
    Record<N, readonly Sample<string>[]>
  >
}

/** Prefix of all metrics. */
const PREFIX = 'couchdb_sidecar_'

type LabelsIn<M> = M extends Metric<infer L> ? L : never
type Readings<M, L extends string = string> = { readonly [N in keyof M]: readonly Sample<L | LabelsIn<M[N]>>[] }

interface Definition<S, L extends string, M> {
  readonly title: string
  readonly prefix?: string
  readonly labels?: Readonly<Record<L, string>>
  readonly metrics: M
  readonly read: (source: S) => Readings<M, L> | Promise<Readings<M, L>>
}

/** Defines a group. Does not compile if a metric is described but not read, or is read without one of its labels. */
export const defineMetrics = <S, M extends Readonly<Record<string, Metric<never>>>, L extends string = never>(
  definition: Definition<S, L, M>,
): MetricGroup<S> => ({ prefix: PREFIX, labels: {}, ...definition })

/** Sample of a metric without labels; none while the number is unknown. */
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
