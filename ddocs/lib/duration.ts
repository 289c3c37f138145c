import { has } from './document.ts'

/** A time as people write it, such as `90s` or `24h`. */
export type Duration = `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Milliseconds; undefined for what is no such time. */
export const parseDuration = (text: string): number | undefined => measure(text, MS)

/** A whole number of one of these units; undefined for what is none. */
export function measure(text: string, units: Readonly<Record<string, number>>): number | undefined {
  const [, number = '', unit = ''] = /^(\d{1,9})\s*([a-z]+)$/i.exec(text) ?? []
  const size = has(units, unit.toLowerCase()) ? units[unit.toLowerCase()] : undefined
  return size === undefined ? undefined : Number(number) * size
}
