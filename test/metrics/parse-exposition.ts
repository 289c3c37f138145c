/**
 * Parses an exposition as Prometheus does, and rejects what a strict parser of either format may reject: a split
 * family, a sample without its type, a repeated label, an invalid number or escape, buckets that do not add up.
 */
import { expect } from 'vitest'

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Family {
  readonly type: string
  readonly help: string
  readonly samples: readonly Sample[]
}

/** Keyed by name. The name of a counter ends in `_total` in both formats. */
export type Families = ReadonlyMap<string, Family>

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const LABEL = String.raw`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"`
const SAMPLE = new RegExp(
  String.raw`^(${NAME})(?:\{(${LABEL}(?:,${LABEL})*)\})? (\+Inf|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$`,
)
const META = new RegExp(String.raw`^# (HELP|TYPE) (${NAME}) ((?:[^"\\\n]|\\[\\"n])+)$`)
const TYPES = ['counter', 'gauge', 'histogram']

export function parseExposition(text: string, format: 'prometheus' | 'openmetrics'): Families {
  const open = format === 'openmetrics'
  expect(text).toMatch(open ? /[^\n]\n# EOF\n$/ : /[^\n]\n$/)
  const lines = text.replace(/(# EOF)?\n$/, '').split('\n')
  const families = new Map<string, { type: string; help: string; samples: Sample[] }>()
  let current: string | undefined
  let help: string | undefined

  for (const line of open ? lines.slice(0, -1) : lines) {
    if (line === '' && !open) continue
    const [, what, family, said] = META.exec(line) ?? []
    if (what === 'HELP') {
      current = family!
      help = said!
    } else if (what === 'TYPE') {
      expect(family, line).toBe(current)
      expect(TYPES, line).toContain(said)
      const name = open && said === 'counter' ? `${family}_total` : family!
      expect(families.has(name), `${name} occurs twice`).toBe(false)
      families.set((current = name), { type: said!, help: help!, samples: [] })
    } else {
      const sample = sampleFrom(line)
      expect(familyOf(sample.name, families.get(current!)!.type), line).toBe(current)
      families.get(current!)!.samples.push(sample)
    }
  }
  for (const [name, family] of families) check(name, family)
  return families
}

function sampleFrom(line: string): Sample {
  const [all, name, pairs] = SAMPLE.exec(line) ?? []
  expect(all, `no sample: ${line}`).toBe(line)
  const labels: Record<string, string> = {}
  for (const [, label, value] of (pairs ?? '').matchAll(new RegExp(LABEL, 'g'))) {
    expect(labels, line).not.toHaveProperty([label!])
    labels[label!] = value!.replace(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped))
  }
  return { name: name!, labels, value: numberFrom(line.slice(line.lastIndexOf(' ') + 1)) }
}

const numberFrom = (text: string) => (text === '+Inf' ? Infinity : Number(text))

const familyOf = (name: string, type: string) =>
  type === 'histogram' ? name.replace(/_(bucket|sum|count)$/, '') : name

function check(name: string, { type, samples }: Family): void {
  const named = samples.map(({ name, labels }) => `${name} ${JSON.stringify(Object.entries(labels).sort())}`)
  expect(new Set(named).size, `samples of ${name} with equal labels`).toBe(named.length)
  expect(name.endsWith('_total'), name).toBe(type === 'counter')
  if (type === 'counter') for (const { value } of samples) expect(value, name).toBeGreaterThanOrEqual(0)
  if (type === 'histogram')
    for (const { labels } of samplesOf(samples, `${name}_count`)) checkRanges(name, samples, labels)
}

function checkRanges(name: string, samples: readonly Sample[], labels: Sample['labels']): void {
  const alike = (sample: Sample) => Object.entries(labels).every(([label, value]) => sample.labels[label] === value)
  const mine = samples.filter(alike)
  const ranges = samplesOf(mine, `${name}_bucket`)
  const ends = ranges.map(({ labels }) => labels.le!)
  for (const end of ends) expect(end).toMatch(/^(\d+\.\d+|\+Inf)$/)
  const sorted = [...ranges].sort((a, b) => numberFrom(a.labels.le!) - numberFrom(b.labels.le!))
  expect(ranges).toEqual(sorted)
  const counts = ranges.map(({ value }) => value)
  expect(counts).toEqual([...counts].sort((a, b) => a - b))
  expect(ends.at(-1)).toBe('+Inf')
  expect(counts.at(-1)).toBe(samplesOf(mine, `${name}_count`)[0]!.value)
  expect(samplesOf(mine, `${name}_sum`)).toHaveLength(1)
}

const samplesOf = (samples: readonly Sample[], name: string) => samples.filter((sample) => sample.name === name)

/** The value of the one sample that has these labels. It may have others, too. */
export function valueOf(families: Families, name: string, labels: Readonly<Record<string, string>> = {}): number {
  const family = families.get(name.replace(/_(bucket|sum|count)$/, '')) ?? families.get(name)
  const found = (family?.samples ?? []).filter(
    (sample) =>
      sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  )
  expect(found, `${name} ${JSON.stringify(labels)}`).toHaveLength(1)
  return found[0]!.value
}
