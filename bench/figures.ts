/** The percentile: the value below which this share of the values lies. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN
}

export const median = (values: readonly number[]): number => quantile(values, 0.5)

export const delaysFigure = (delays: readonly number[], of = delays.length): string =>
  `median ${quantile(delays, 0.5).toFixed(0)} ms, p99 ${quantile(delays, 0.99).toFixed(0)} ms` +
  (delays.length === of ? '' : ` (${delays.length} of ${of})`)
