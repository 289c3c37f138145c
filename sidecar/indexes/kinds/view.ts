import { askViewIndex, buildViewIndex, readViewIndex } from '../view-index.ts'
import type { Kind, Servers } from './kind.ts'

const ASK_MS = 60_000

/** Views, Mango's too. */
export const ofViews = ({ quick, patient }: Servers): Kind => ({
  async read({ database, ddoc }, _target, signal) {
    const { seq, pending, isRunning } = await readViewIndex(quick, database, ddoc, { signal })
    return { seq, lag: pending, isRunning }
  },
  build: ({ database, ddoc, name }, _target, signal) => buildViewIndex(quick, database, ddoc, name, { signal }),
  ask: ({ database, ddoc, name }, signal) => askViewIndex(patient, database, ddoc, name, { signal, timeoutMs: ASK_MS }),
})

/** Where the server does not tell how far a view is (PouchDB): a caller that has queried it knows that it is built. */
export function ofViewsThatDoNotTell(servers: Servers): Kind {
  const reached = new WeakMap<object, number>()
  const views = ofViews(servers)
  return {
    tells: false,
    async read(index, target) {
      const seq = reached.get(index) ?? 0
      return { seq, lag: Math.max(0, target - seq), isRunning: false }
    },
    async build(index, target, signal) {
      await views.ask(index, signal)
      reached.set(index, target)
    },
    ask: (index, signal) => views.ask(index, signal),
  }
}
