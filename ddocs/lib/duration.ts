import { has } from './document.ts'

/** A duration such as `90s` or `24h`. */
export type Duration = `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** 100 years: a longer duration may end after the last date that can be written. */
export const LONGEST_MS = 36_500 * MS.d

/** Milliseconds; undefined if the text is no duration, or longer than `LONGEST_MS`. */
export function parseDuration(text: string): number | undefined {
  const ms = measure(text, MS)
  return ms !== undefined && ms <= LONGEST_MS ? ms : undefined
}

/** Parses a whole number of one of these units; undefined for any other text. */
export function measure(text: string, units: Readonly<Record<string, number>>): number | undefined {
  const [, number = '', unit = ''] = /^(\d{1,9})\s*([a-z]+)$/i.exec(text) ?? []
  const size = has(units, unit.toLowerCase()) ? units[unit.toLowerCase()] : undefined
  return size === undefined ? undefined : Number(number) * size
}
