import { inject, TestRunner } from 'vitest'
import { findChromium } from './browser.ts'
import { findCouchBinary } from './couchdb-binary.ts'
import { findPortMapper } from './couchdb-cluster.ts'
import { findProcessTable } from './processes.ts'

/**
 * The features that the embedded server lacks and a test needs; `test/embedded/differences.test.ts` proves each one.
 * Each reason first states what CouchDB does.
 */
const lackingInEmbedded = {
  'bulk fields checked':
    '_bulk_docs answers 400 to a field that begins with _; pouchdb-server answers 500, as to an internal error',
  'bulk rows in order': '_bulk_docs answers in the order of the request; pouchdb-server gives refused rows first',
  'bulk secObj': 'validate_doc_update sees the security object; pouchdb-server gives {} to it on _bulk_docs',
  'closed databases': 'a new database is open to admins only; in pouchdb-server to all clients, until _security is set',
  'database identity': 'instance_start_time belongs to the database; in pouchdb-server to the server',
  'feed parameters': 'a continuous feed checks timeout, limit and since; pouchdb-server ignores them',
  'guarded find': '_find and _bulk_get respect _security; in pouchdb-server they are open to all clients',
  'guarded revisions': 'validate_doc_update sees the _revisions of a replicated document; not in pouchdb-server',
  'index lag': '_design/x/_info reports how stale an index is; pouchdb-server does not',
  'local without revision': 'a _local document is overwritten without its revision; pouchdb-server gives 409',
  'metrics role': 'users may have the role _metrics; pouchdb-server refuses every role that begins with _',
  'node endpoints': '/_node/... and /_up exist; not in pouchdb-server',
  'own user document': 'only an admin changes roles; in pouchdb-server users may change their own',
  'pbkdf2 other than sha1': 'pre-hashed users log in with any PRF; in pouchdb-server only with SHA-1',
  'refusals by status':
    'a user without access gets 403; pouchdb-server gives 401, and 201 with refused rows to _bulk_docs',
  'slash in database names': 'a database may be called a/b; in pouchdb-server it becomes ab',
  'size limit': 'documents over 8 MB are refused; pouchdb-server takes up to 4 GB',
  'whole requests':
    'a filter or validate_doc_update sees the complete request and user; pouchdb-server omits userCtx.db, for example',
} as const

/** The features that a machine may lack, with the check for each. */
const lackingHere = {
  cluster: {
    find: findPortMapper,
    reason: 'no CouchDB binary with its port mapper (epmd) found: install it, or set COUCHDB_BIN',
  },
  'docker compose': { find: () => inject('compose'), reason: 'no container engine with docker compose answers' },
  browser: { find: findChromium, reason: 'no Chromium found: install it, or set CHROMIUM_BIN' },
  'mail catcher': {
    find: () => process.env.TEST_IMAGE === undefined || undefined,
    reason: 'the image lacks the mail catcher and the embedded server, which are a development package',
  },
  'sidecar process': {
    find: () => process.env.TEST_IMAGE === undefined || undefined,
    reason: 'the sidecar runs in a container: the test cannot pause its process',
  },
  'private server': { find: findCouchBinary, reason: 'no CouchDB binary found: install it, or set COUCHDB_BIN' },
  'process table': {
    find: findProcessTable,
    reason: 'this machine has no /proc: the test cannot list other processes',
  },
} as const

export type Feature = keyof typeof lackingInEmbedded | keyof typeof lackingHere

/**
 * Skips the running test if the server or the machine lacks the feature, and reports the reason. Tests skip only by
 * this function and `skipFor`. Call it first: resources created before it are removed, but cost time.
 *
 * @example
 * test('a database that is created again is another one', async () => {
 *   needs('database identity')
 */
export function needs(feature: Feature): void {
  const reason = lacking(feature)
  if (reason !== undefined) skipFor(`${feature}: ${reason}`)
}

/** As `needs`, for a condition that only the test file can check. */
export function skipFor(reason: string): void {
  TestRunner.getCurrentTest()?.context.skip(reason)
}

function lacking(feature: Feature): string | undefined {
  if (feature in lackingHere) {
    const { find, reason } = lackingHere[feature as keyof typeof lackingHere]
    return find() === undefined ? reason : undefined
  }
  const reason = lackingInEmbedded[feature as keyof typeof lackingInEmbedded]
  return inject('couchdb').kind === 'embedded' ? reason : undefined
}
