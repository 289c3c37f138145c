import { patternOf } from '../databases/patterns.ts'
import { samplesOf, type Metrics } from '../metrics/metric.ts'
import { grouped, Table, Text } from './layout.tsx'
import type { Counted } from './per-database.ts'

/** How far this worker has read a database, or all databases that match a glob. */
export interface Feed {
  /** The name or glob in the settings. */
  readonly pattern: string
  /** Unread changes. */
  readonly pending: number
  /** Seconds since the feed was last known to be read to its end; the longest of several feeds. */
  readonly behindSeconds: number
}

/** Reads the feeds of this worker from its metrics. */
export async function feedsOf(groups: readonly Metrics[]): Promise<Feed[]> {
  const { feed_behind_seconds, feed_pending_changes } = await samplesOf(groups, [
    'feed_behind_seconds',
    'feed_pending_changes',
  ])
  const pending = new Map(feed_pending_changes.map(([value, { database }]) => [database, Number(value)]))
  return feed_behind_seconds.map(([value, { database: pattern = '' }]) => ({
    pattern,
    pending: pending.get(pattern) ?? 0,
    behindSeconds: Number(value),
  }))
}

interface DatabasesProps {
  readonly feeds: readonly Feed[]
  readonly counted: Counted
  /** Names and globs in the settings. */
  readonly patterns: readonly string[]
}

/** Shows how far the feeds of the databases are read. */
export const Databases = ({ feeds, counted: { databases, isWhole }, patterns }: DatabasesProps) => {
  const counts = new Map<string, number>()
  for (const { name } of databases) {
    const pattern = patternOf(name, patterns)
    counts.set(pattern, (counts.get(pattern) ?? 0) + 1)
  }
  return (
    <section>
      <h2 id="databases">Databases</h2>
      <Table labelledby="databases" columns={['Name or glob', 'Databases', 'Changes to read', 'Behind']}>
        {feeds.map(({ pattern, pending, behindSeconds }) => {
          const count = counts.get(pattern) ?? 0
          return (
            <tr>
              <th scope="row">
                <Text of={pattern} />
              </th>
              <td class="number">{isWhole ? grouped(count) : `${grouped(count)} or more`}</td>
              <td class="number">{grouped(pending)}</td>
              <td class="number">{`${grouped(Math.round(behindSeconds))} s`}</td>
            </tr>
          )
        })}
      </Table>
      <p class="quiet">As this worker reads them. Under Workers: how far the others are behind.</p>
    </section>
  )
}
