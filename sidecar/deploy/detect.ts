import type { Couch } from '../couch/client.ts'
import { isCouchError } from '../couch/errors.ts'
import type { Target } from './bundle.ts'

/** What runs the functions of design documents. */
export interface Engine {
  /** `quickjs`, `spidermonkey 102`, or `unknown`. */
  readonly name: string
  readonly target: Target
}

const UNKNOWN: Engine = { name: 'unknown', target: 'es2017' }

/**
 * Asks the server for its engine. Servers that do not tell (PouchDB, or a CouchDB that lets only admins ask) are taken
 * for ES2017. Throws `CouchError` where there is no server.
 */
export async function detectEngine(couch: Couch, signal?: AbortSignal): Promise<Engine> {
  try {
    const versions = await couch.request<Versions>({ path: '_node/_local/_versions', signal })
    const { name, version } = versions.javascript_engine ?? {}
    if (typeof name !== 'string') return UNKNOWN
    const target = name === 'spidermonkey' && String(version).startsWith('1.') ? 'es5' : 'es2017'
    return { name: version === undefined ? name : `${name} ${version}`, target }
  } catch (thrown) {
    if (isCouchError(thrown) && thrown.retry !== 'soon') return UNKNOWN
    throw thrown
  }
}

interface Versions {
  readonly javascript_engine?: { readonly name?: string; readonly version?: string }
}
