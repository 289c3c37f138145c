/** The last day of security fixes of each release line (https://github.com/nodejs/Release). Others have ended before. */
const LAST_DAYS: Readonly<Record<number, string>> = {
  20: '2026-04-30',
  22: '2027-04-30',
  24: '2028-04-30',
  25: '2026-06-01',
  26: '2029-04-30',
}
const NEWEST = 26
const either = new Intl.ListFormat('en-GB', { type: 'disjunction' }) // `22, 24 or 26`

/** What is to be said of this version of Node, if it gets no security fixes any more. @param now milliseconds since the epoch */
export function endedNode(version: string, now: number): string | undefined {
  const line = parseInt(version)
  const lastDay = LAST_DAYS[line]
  const isNew = line > NEWEST
  if (isNew || (lastDay !== undefined && now < Date.parse(lastDay) + 86_400_000)) return undefined
  const living = Object.keys(LAST_DAYS).filter(
    (one) => Number(one) % 2 === 0 && now < Date.parse(LAST_DAYS[Number(one)]!),
  )
  const since = lastDay === undefined ? '' : ` since ${lastDay}`
  const other = living.length > 0 ? either.format(living) : `${NEWEST + 2} or later`
  return `Node ${version} has had no security fixes${since}: run the sidecar on Node ${other}`
}
