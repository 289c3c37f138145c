import { z } from 'zod'
import type { Couch } from '../couch/client.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import { server } from '../couch/schemas.ts'
import type { Target } from './bundle.ts'

/** The JavaScript engine that runs the functions of design documents. */
export interface Engine {
  /** `quickjs`, `spidermonkey 102`, or `unknown`. */
  readonly name: string
  readonly target: Target
}

const UNKNOWN: Engine = { name: 'unknown', target: 'es2017' }

/** Erlang's name for a node without a configured name. */
const NAMELESS = 'nonode@nohost'

/**
 * Detects the server's engine. A server that does not report it counts as ES2017: PouchDB, or a CouchDB that requires
 * admin rights. Throws `CouchError` if no answer comes.
 */
export async function detectEngine(couch: Couch, signal?: AbortSignal): Promise<Engine> {
  try {
    const { features = [] } = await couch.request({ signal }, server)
    if (features.includes('quickjs')) return { name: 'quickjs', target: 'es2017' }
    const { name: node } = await couch.request({ path: '_node/_local', signal }, nodeOf)
    if (node === NAMELESS) return UNKNOWN // the next request makes a nameless CouchDB 3.5 call clouseau and crash
    const { javascript_engine: engine } = await couch.request({ path: '_node/_local/_versions', signal }, versions)
    return engine?.name ? engineFrom(engine.name, engine.version) : UNKNOWN
  } catch (thrown) {
    if (isCouchError(thrown) && thrown.status !== undefined) return UNKNOWN
    throw thrown
  }
}

const nodeOf = z.object({ name: z.string().optional() })
const versions = z.object({
  javascript_engine: z.object({ name: z.string().optional(), version: z.string().optional() }).optional(),
})

function engineFrom(name: string, version: string | undefined): Engine {
  const target = name === 'spidermonkey' && version?.startsWith('1.') ? 'es5' : 'es2017'
  return { name: version === undefined ? name : `${name} ${version}`, target }
}
