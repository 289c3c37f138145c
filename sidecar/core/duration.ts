export { LONGEST_MS, measure, parseDuration, type Duration } from '../../ddocs/lib/duration.ts'

const UNITS = [
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const

/** Formats a duration for people, in the largest unit without a remainder: `90 s`, `2 h`. */
export function lasting(ms: number): string {
  const [unit, size] = UNITS.find(([, size]) => ms % size === 0) ?? ['ms', 1]
  return `${ms / size} ${unit}`
}
