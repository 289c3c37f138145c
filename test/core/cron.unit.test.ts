import { expect, test } from 'vitest'
import { parseCron, type Cron } from '../../sidecar/core/cron.ts'

function cron(fields: string, timeZone = 'UTC'): Cron {
  const parsed = parseCron(fields, timeZone)
  if (typeof parsed === 'string') throw new Error(parsed)
  return parsed
}

/** The next `count` due times after `time`. */
function after(time: string, count: number, fields: string, timeZone?: string): string[] {
  const { nextAfter } = cron(fields, timeZone)
  const times = [Date.parse(time)]
  for (let i = 0; i < count; i++) times.push(nextAfter(times.at(-1)!))
  return times.slice(1).map((ms) => new Date(ms).toISOString().replace(':00.000Z', 'Z'))
}

test('a time of day moves with daylight saving', () => {
  expect(after('2026-10-24T00:00:00Z', 3, '0 6 * * *', 'Europe/Berlin')).toEqual([
    ...['2026-10-24T04:00Z', '2026-10-25T05:00Z', '2026-10-26T05:00Z'],
  ])
})

test('a skipped time is due after the clock change, and a repeated time is due once', () => {
  expect(after('2026-03-28T00:00:00Z', 3, '30 2 * * *', 'Europe/Berlin')).toEqual([
    ...['2026-03-28T01:30Z', '2026-03-29T01:00Z', '2026-03-30T00:30Z'],
  ])
  expect(after('2026-10-24T00:00:00Z', 3, '30 2 * * *', 'Europe/Berlin')).toEqual([
    ...['2026-10-24T00:30Z', '2026-10-25T00:30Z', '2026-10-26T01:30Z'],
  ])
})

test('hourly and half-hourly schedules continue through clock changes', () => {
  expect(after('2026-10-24T23:30:00Z', 4, '0 * * * *', 'Europe/Berlin')).toEqual([
    ...['2026-10-25T00:00Z', '2026-10-25T01:00Z', '2026-10-25T02:00Z', '2026-10-25T03:00Z'],
  ])
  expect(after('2026-10-25T00:10:00Z', 4, '*/30 * * * *', 'Europe/Berlin')).toEqual([
    ...['2026-10-25T00:30Z', '2026-10-25T01:00Z', '2026-10-25T01:30Z', '2026-10-25T02:00Z'],
  ])
  expect(after('2026-03-29T00:10:00Z', 3, '*/30 * * * *', 'Europe/Berlin')).toEqual([
    ...['2026-03-29T00:30Z', '2026-03-29T01:00Z', '2026-03-29T01:30Z'],
  ])
})

test('cron supports names, nicknames and the last day of a month, and handles a skipped midnight', () => {
  expect(after('2026-09-05T12:00:00Z', 2, '0 0 * * *', 'America/Santiago')).toEqual([
    ...['2026-09-06T04:00Z', '2026-09-07T03:00Z'],
  ])
  expect(after('2026-11-26T12:00:00Z', 2, '0 9 * * MON-FRI')).toEqual(['2026-11-27T09:00Z', '2026-11-30T09:00Z'])
  expect(after('2026-11-26T12:00:00Z', 2, '@daily')).toEqual(['2026-11-27T00:00Z', '2026-11-28T00:00Z'])
  expect(after('2026-11-26T12:00:00Z', 2, '0 0 L * *')).toEqual(['2026-11-30T00:00Z', '2026-12-31T00:00Z'])
  expect(after('2026-11-26T12:00:00Z', 1, '0 0 29 2 *')).toEqual(['2028-02-29T00:00Z'])
})

test('the last due time includes the moment itself', () => {
  const six = Date.parse('2026-11-26T06:00:00Z')
  const { lastUntil } = cron('0 6 * * *')
  expect(lastUntil(six)).toBe(six)
  expect(lastUntil(six - 1)).toBe(six - 24 * 3_600_000)
})

test.each([
  ['', 'UTC', /^the five fields of a cron/],
  ['* * * *', 'UTC', /^the five fields/],
  ['* * * * * *', 'UTC', /^the five fields/],
  ['61 * * * *', 'UTC', /^the five fields/],
  ['soon', 'UTC', /^the five fields/],
  ['2026-11-26T12:00:00Z', 'UTC', /^the five fields/],
  ['0 0 30 2 *', 'UTC', /^a cron expression with at least one due time/],
  ['0 6 * * *', 'Mars', /^a time zone of the IANA database/],
])('%j in %s is no valid schedule', (fields, timeZone, expected) => {
  expect(parseCron(fields, timeZone)).toMatch(expected)
})
