/**
 * For the tests of your own handlers: `import { run, startTestSidecar } from 'couchdb-sidecar/testing'`.
 *
 * @module
 */
import type { Machines } from '../../ddocs/machine.ts'
import type { HandlersModule } from '../docstate/handlers.ts'
import type { TestSidecar, TestSidecarOptions } from './test-sidecar.ts'

export { run, type RunOptions, type RunResult } from '../docstate/run-alone.ts'
export type { TestSidecar, TestSidecarOptions, WaitOptions } from './test-sidecar.ts'
export type { CaughtMail } from '../embedded/start.ts'
export type { Documents } from '../couch/documents.ts'

/**
 * Starts a sidecar with these handlers in this process, on a CouchDB that is real (`COUCHDB_URL`) or embedded, with databases of its
 * own and a catcher of its mails. Its clock can be set forward, its worker crash, its saves be lost or meet a conflict. Needs
 * `couchdb-sidecar-embedded`. Resolves when it follows its databases.
 *
 * @throws ConfigError if the handlers or the settings are faulty; `CouchError`
 * @example
 * const sidecar = await startTestSidecar(handlers)
 * await sidecar.put({ _id: 'o1', type: 'order', state: 'new' })
 * await sidecar.until('o1', 'priced')
 * await sidecar.close()
 */
export async function startTestSidecar<M extends Machines>(
  handlers: HandlersModule<M>,
  options: TestSidecarOptions = {},
): Promise<TestSidecar> {
  const { start } = await import('./test-sidecar.ts') // `run` does without
  return start(handlers, options)
}
