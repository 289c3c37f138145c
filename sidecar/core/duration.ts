/** A time as people write it, such as `90s` or `24h`. */
export type Duration = `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Milliseconds; undefined for what is no such time. */
export const parseDuration = (text: string): number | undefined => measure(text, MS)

/** A whole number of one of these units; undefined for what is none. */
export function measure(text: string, units: Readonly<Record<string, number>>): number | undefined {
  const [, number = '', unit = ''] = /^(\d{1,9})\s*([a-z]+)$/i.exec(text) ?? []
  const size = Object.hasOwn(units, unit.toLowerCase()) ? units[unit.toLowerCase()] : undefined
  return size === undefined ? undefined : Number(number) * size
}

const UNITS = [
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const

/** For people, in the largest unit that leaves no rest: `90 s`, `2 h`. */
export function lasting(ms: number): string {
  const [unit, size] = UNITS.find(([, size]) => ms % size === 0) ?? ['ms', 1]
  return `${ms / size} ${unit}`
}
