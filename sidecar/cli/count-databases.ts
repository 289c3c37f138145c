import { Semaphore } from '../core/semaphore.ts'
import type { Couch } from '../couch/client.ts'
import { isCouchError } from '../couch/errors.ts'
import { countStates } from '../docstate/operator/status.ts'
import type { Counted } from './state-table.ts'
import type { Terminal } from './terminal.ts'
import { whileBuilding } from './while-building.ts'

/** Asked at once. */
const TOGETHER = 16

/** Counts in each of these databases, in their order; shows how far it is, where there are many. */
export async function countDatabases(
  couch: Couch,
  databases: readonly string[],
  terminal: Pick<Terminal, 'note' | 'redraw' | 'signal'>,
): Promise<Counted[]> {
  const semaphore = new Semaphore(() => TOGETHER)
  let done = 0
  async function count(database: string): Promise<Counted> {
    try {
      const counting = countStates(couch.db(database), terminal.signal)
      return { database, counts: await whileBuilding(counting, { couch, database, terminal }) }
    } catch (thrown) {
      if (!isCouchError(thrown, 'not_found')) throw thrown
      return { database, counts: undefined }
    } finally {
      done += 1
      if (databases.length > TOGETHER) terminal.redraw?.(`counting: ${done} of ${databases.length} databases`)
    }
  }
  const counted = await Promise.all(databases.map((database) => semaphore.run(() => count(database))))
  terminal.redraw?.('')
  return counted
}
