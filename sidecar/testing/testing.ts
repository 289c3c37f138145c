/**
 * Tools to test your own handlers: `import { run, startTestSidecar } from 'couchdb-sidecar/testing'`.
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
 * Starts a sidecar with these handlers in this process, with its own databases and a mail catcher. CouchDB is real
 * (`COUCHDB_URL`) or embedded. A test can set the clock forward, crash the worker, lose a save or cause a conflict.
 * Needs `couchdb-sidecar-embedded`. Resolves when the sidecar follows its databases.
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
  const { start } = await import('./test-sidecar.ts') // not needed for `run`
  return start(handlers, options)
}
