import { queryViewIndex, buildViewIndex, readViewIndex } from '../view-index.ts'
import type { Kind, Servers } from './kind.ts'

const ASK_MS = 60_000

/** Views, including those of Mango. */
export const ofViews = ({ quick, patient }: Servers): Kind => ({
  async read({ database, ddoc }, _target, signal) {
    const { seq, pending, isRunning } = await readViewIndex(quick, database, ddoc, { signal })
    return { seq, lag: pending, isRunning }
  },
  build: ({ database, ddoc, name }, _target, signal) => buildViewIndex(quick, database, ddoc, name, { signal }),
  query: ({ database, ddoc, name }, signal) =>
    queryViewIndex(patient, database, ddoc, name, { signal, timeoutMs: ASK_MS }),
})

/** Views of a server that does not report their progress (PouchDB): an answered query proves that a view is built. */
export function ofViewsWithoutProgress(servers: Servers): Kind {
  const reached = new WeakMap<object, number>()
  const views = ofViews(servers)
  return {
    reportsProgress: false,
    async read(index, target) {
      const seq = reached.get(index) ?? 0
      return { seq, lag: Math.max(0, target - seq), isRunning: false }
    },
    async build(index, target, signal) {
      await views.query(index, signal)
      reached.set(index, target)
    },
    query: (index, signal) => views.query(index, signal),
  }
}
