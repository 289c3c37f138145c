/**
 * Tries the functions of a design document before it is pushed. CouchDB would take a map that throws on every
 * document and say nothing but a line in its log; here it fails the deploy, with the sample on which it threw.
 */
import { failureOf } from '../core/errors.ts'
import type { Doc } from '../couch/documents.ts'
import type { Row, Sandbox } from './sandbox.ts'
import { tombstone, type Sample } from './samples.ts'

/** A function, and which field of the document it is. */
export interface TriedFunction {
  /** `views/by_state/map` */
  readonly path: string
  readonly file: string
  readonly fn: unknown
}

export interface Trial {
  readonly sandbox: Sandbox
  readonly ddoc: Doc
  readonly functions: readonly TriedFunction[]
  readonly samples: readonly Sample[]
}

/** The first fault of each function, as a sentence. Of shows, lists, updates and rewrites only that they are functions. */
export const tryFunctions = (trial: Trial): string[] =>
  trial.functions.flatMap((fn) => tryFunction(fn, trial).slice(0, 1))

function tryFunction(tried: TriedFunction, trial: Trial): string[] {
  const { path } = tried
  if (/^(views\/[^/]+\/map|(indexes|nouveau)\/[^/]+\/index)$/.test(path)) return tryMap(tried, trial)
  if (/^views\/[^/]+\/reduce$/.test(path)) return tryReduce(tried, trial)
  if (/^filters\/[^/]+$/.test(path)) return tryFilter(tried, trial)
  if (path === 'validate_doc_update') return tryValidate(tried, trial)
  return []
}

const tryMap = (tried: TriedFunction, { sandbox, samples }: Trial): string[] =>
  samples.flatMap(({ name, doc }) => faultsOf(tried, name, () => sandbox.call(tried.fn, null, [doc])))

const tryFilter = (tried: TriedFunction, { sandbox, samples, ddoc }: Trial): string[] =>
  samples.flatMap(({ name, doc }) =>
    faultsOf(tried, name, () => sandbox.call(tried.fn, ddoc, [doc, { method: 'GET', query: {}, userCtx: users[0] }])),
  )

/** On the rows that the view's own map makes of the samples. */
function tryReduce(tried: TriedFunction, { sandbox, samples, functions }: Trial): string[] {
  const map = functions.find(({ path }) => path === tried.path.replace(/reduce$/, 'map'))
  const rows = samples.flatMap(({ doc }) => (map ? rowsOf(map, doc, sandbox) : []))
  if (rows.length === 0) return []
  const keys = rows.map(([key], index) => [key, `sample-${index}`])
  const values = rows.map(([, value]) => value)
  return faultsOf(tried, 'the rows of all samples', () => {
    const { result } = sandbox.call(tried.fn, null, [keys, values, false])
    sandbox.call(tried.fn, null, [null, [result ?? null, result ?? null], true])
  })
}

function rowsOf(map: TriedFunction, doc: Doc, sandbox: Sandbox): Row[] {
  try {
    return sandbox.call(map.fn, null, [doc]).emitted
  } catch {
    return [] // said where the map itself is tried
  }
}

const users = [
  { db: 'sample', name: 'somebody', roles: ['member'] },
  { db: 'sample', name: null, roles: [] },
  { db: 'sample', name: 'admin', roles: ['_admin'] },
]

/** Each sample as a new document, over itself, and deleted; by each kind of user. */
function tryValidate(tried: TriedFunction, { sandbox, samples, ddoc }: Trial): string[] {
  const writes = samples
    .filter(({ doc }) => !doc._id.startsWith('_design/')) // CouchDB does not ask for those
    .flatMap(({ name, doc }) => [
      { name: `${name} (new)`, args: [doc, null] },
      { name: `${name} (changed)`, args: [doc, { ...doc, _rev: '1-0' }] },
      {
        name: `${name} (deleted)`,
        args: [
          { ...tombstone.doc, _id: doc._id },
          { ...doc, _rev: '1-0' },
        ],
      },
    ])
  const all = [...writes, { name: tombstone.name, args: [tombstone.doc, null] }]
  return all.flatMap(({ name, args }) =>
    users.flatMap((user) =>
      faultsOf(tried, name, () => {
        try {
          sandbox.call(tried.fn, ddoc, [...args, user, {}])
        } catch (thrown) {
          if (!isRefusal(thrown)) throw thrown
        }
      }),
    ),
  )
}

/** What CouchDB answers with 403 or 401. Anything else thrown is a 500. */
function isRefusal(thrown: unknown): boolean {
  if (typeof thrown !== 'object' || thrown === null) return false
  const { forbidden, unauthorized } = thrown as { forbidden?: unknown; unauthorized?: unknown }
  return typeof forbidden === 'string' || typeof unauthorized === 'string'
}

function faultsOf({ file }: TriedFunction, sample: string, run: () => unknown): string[] {
  try {
    run()
    return []
  } catch (thrown) {
    return [`${file}: threw on ${sample}: ${inWords(thrown)}`]
  }
}

/** Errors from inside the sandbox are of another realm, and no `Error` here. */
export function inWords(thrown: unknown): string {
  if (typeof thrown === 'object' && thrown !== null && 'message' in thrown && 'name' in thrown) {
    return `${String(thrown.name)}: ${String(thrown.message)}`
  }
  return typeof thrown === 'object' ? (JSON.stringify(thrown) ?? 'nothing') : failureOf(thrown).reason
}
