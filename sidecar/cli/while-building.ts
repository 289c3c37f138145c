import { systemClock } from '../core/clock.ts'
import type { Couch } from '../couch/client.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import { readIndexerTasks } from '../indexes/indexer-tasks.ts'
import { DDOC } from '../docstate/finding/pages.ts'
import type { Terminal } from './terminal.ts'

export interface Waiting {
  readonly couch: Couch
  /** Whose index is asked for. */
  readonly database: string
  readonly terminal: Pick<Terminal, 'note' | 'signal'>
  /** Between two notes. Default 5 s. */
  readonly everyMs?: number
}

/** An answer of a busy server is no news, and no reason to wait long for it. */
const TASKS_MS = 5000

/**
 * Waits for an answer that an index may have to be built for, which takes CouchDB minutes or hours where there are
 * many documents, and says meanwhile how far that is. Ends with `asking`, or with the terminal's signal.
 */
export async function whileBuilding<T>(asking: Promise<T>, waiting: Waiting): Promise<T> {
  const answered = new AbortController()
  const stop = () => answered.abort(new Error('answered'))
  const { signal } = answered
  const [answer] = await Promise.all([asking.finally(stop), tell(waiting, signal).catch(ignoreEnd(signal))])
  return answer
}

/** Until the signal. */
async function tell({ couch, database, terminal, everyMs = 5000 }: Waiting, signal: AbortSignal): Promise<never> {
  for (;;) {
    await systemClock.sleep(everyMs, signal)
    terminal.note(`${await findProgress(couch, database, signal)}; waiting (Ctrl-C ends)`)
  }
}

const ignoreEnd = (signal: AbortSignal) => (thrown: unknown) => {
  if (!signal.aborted) throw thrown
}

/** Only a server admin may ask for the tasks; others learn that there is no answer yet, and no more. */
async function findProgress(couch: Couch, database: string, signal: AbortSignal): Promise<string> {
  try {
    const tasks = await readIndexerTasks(couch, { signal, timeoutMs: TASKS_MS })
    const ours = tasks.filter((task) => task.database === database && task.ddoc === `_design/${DDOC}`)
    const sum = (field: 'changesDone' | 'changesTotal') => ours.reduce((n, task) => n + task[field], 0)
    if (ours.length === 0) return `no answer about ${database} yet`
    return `CouchDB is building the index of ${database}: ${sum('changesDone')} of ${sum('changesTotal')} changes`
  } catch (thrown) {
    if (!isCouchError(thrown)) throw thrown
    return `no answer about ${database} yet; CouchDB may be building its index`
  }
}
