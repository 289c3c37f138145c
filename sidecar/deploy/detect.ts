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

/** What Erlang calls a node without a name. */
const NAMELESS = 'nonode@nohost'

/**
 * Asks the server for its engine. Servers that do not tell (PouchDB, or a CouchDB that lets only admins ask) are taken
 * for ES2017. Throws `CouchError` where there is no answer at all.
 */
export async function detectEngine(couch: Couch, signal?: AbortSignal): Promise<Engine> {
  const ask = <T>(path?: string) => couch.request<T>({ ...(path !== undefined && { path }), signal })
  try {
    const { features = [] } = await ask<{ features?: readonly string[] }>()
    if (features.includes('quickjs')) return { name: 'quickjs', target: 'es2017' }
    const { name: node } = await ask<{ name?: string }>('_node/_local')
    if (node === NAMELESS) return UNKNOWN // CouchDB 3.5 without a node name asks for clouseau here, and dies of it
    const { javascript_engine: engine } = await ask<Versions>('_node/_local/_versions')
    return engine?.name ? engineFrom(engine.name, engine.version) : UNKNOWN
  } catch (thrown) {
    if (isCouchError(thrown) && thrown.status !== undefined) return UNKNOWN
    throw thrown
  }
}

interface Versions {
  readonly javascript_engine?: { readonly name?: string; readonly version?: string }
}

function engineFrom(name: string, version: string | undefined): Engine {
  const target = name === 'spidermonkey' && version?.startsWith('1.') ? 'es5' : 'es2017'
  return { name: version === undefined ? name : `${name} ${version}`, target }
}
