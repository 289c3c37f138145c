import { createPeriodicRun } from '../core/periodic.ts'
import { together } from '../core/together.ts'
import type { Feature } from '../feature.ts'
import type { Platform } from '../platform.ts'
import { dropOldDatabases } from './history-databases.ts'
import { HistoryWriter } from './history-writer.ts'

const HOUR_MS = 3_600_000

/** Stores each ended entry as a document, if the settings name a history database (docs/operating.md). */
export function historyFeature({ config, couch, events, clock, random, log }: Platform): Feature {
  const { historyDb: name, historyAgeMs: ageMs } = config
  if (name === undefined) return {}
  const writer = new HistoryWriter({ couch: couch.work, name, worker: config.name, clock, random, log })
  const old = createPeriodicRun({
    async sweep(signal) {
      const dropped = await dropOldDatabases(couch.work, { name, ageMs, now: clock.now() }, signal)
      if (dropped.length > 0)
        log.info({ databases: dropped }, 'the history of these weeks was deleted, as it is too old')
    },
    everyMs: () => HOUR_MS,
    ...{ clock, random, log },
  })
  return {
    async run(signal) {
      const ref = events.subscribe('entry:ended', ({ event }) => writer.add(event))
      try {
        await together([(until) => writer.run(until), (until) => old.run(until)], signal)
      } finally {
        events.unsubscribe(ref)
      }
    },
  }
}
