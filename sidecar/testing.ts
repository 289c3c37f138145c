/**
 * For the tests of your own handlers: `import { run } from 'couchdb-sidecar/testing'`.
 *
 * @module
 */
export { run, type RunOptions, type RunResult } from './docstate/run-alone.ts'
