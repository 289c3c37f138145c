import { systemClock } from '../core/clock.ts'
import type { Couch } from '../couch/client.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import { readIndexerTasks } from '../indexes/indexer-tasks.ts'
import { DDOC } from '../docstate/finding/pages.ts'
import type { Terminal } from './terminal.ts'

export interface Waiting {
  readonly couch: Couch
  /** Database with the requested index. */
  readonly database: string
  readonly terminal: Pick<Terminal, 'note' | 'signal'>
  /** Pause between two notes. Default 5 s. */
  readonly everyMs?: number
}

/** Timeout of a request for tasks, milliseconds: progress of a busy server is not worth a long wait. */
const TASKS_MS = 5000

/**
 * Waits for an answer that may need an index built, and prints the progress. With many documents, CouchDB needs minutes
 * or hours for it. Ends with `work`, or with the terminal's signal.
 */
export async function whileBuilding<T>(work: Promise<T>, waiting: Waiting): Promise<T> {
  const answered = new AbortController()
  const stop = () => answered.abort(new Error('answered'))
  const { signal } = answered
  const [answer] = await Promise.all([work.finally(stop), printProgress(waiting, signal).catch(ignoreEnd(signal))])
  return answer
}

/** Prints notes until the signal. */
async function printProgress(
  { couch, database, terminal, everyMs = 5000 }: Waiting,
  signal: AbortSignal,
): Promise<never> {
  for (;;) {
    await systemClock.sleep(everyMs, signal)
    terminal.note(`${await findProgress(couch, database, signal)}; waiting (press Ctrl-C to stop)`)
  }
}

const ignoreEnd = (signal: AbortSignal) => (thrown: unknown) => {
  if (!signal.aborted) throw thrown
}

/** Only a server admin may read the tasks. Other users see only that no answer has come yet. */
async function findProgress(couch: Couch, database: string, signal: AbortSignal): Promise<string> {
  try {
    const tasks = await readIndexerTasks(couch, { signal, timeoutMs: TASKS_MS })
    const ours = tasks.filter((task) => task.database === database && task.ddoc === `_design/${DDOC}`)
    const sum = (field: 'changesDone' | 'changesTotal') => ours.reduce((n, task) => n + task[field], 0)
    if (ours.length === 0) return `CouchDB has not answered for ${database} yet`
    return `CouchDB is building the index of ${database}: ${sum('changesDone')} of ${sum('changesTotal')} changes`
  } catch (thrown) {
    if (!isCouchError(thrown)) throw thrown
    return `CouchDB has not answered for ${database} yet and may be building an index`
  }
}
