/**
 * Tries the functions of a design document before the deploy. CouchDB accepts a map that throws on every document, and
 * only logs a line. Here such a map fails the deploy, and the fault names the sample.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { adviceOn } from './language-names.ts'
import { failureOf } from '../core/failure.ts'
import type { Doc } from '../couch/documents.ts'
import type { Row, Sandbox } from './sandbox.ts'
import { sampleRequests, sampleSecurity, sampleUsers } from './sample-requests.ts'
import { isDesign, stored, tombstone, type Sample } from './samples.ts'

/** A function and its field in the document. */
export interface TriedFunction {
  /** Such as `views/by_state/map`. */
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

/** One call that must succeed. */
interface Case {
  readonly name: string
  readonly run: () => unknown
}

/**
 * Returns the first fault of each function, as a sentence. Shows, lists, updates and rewrites only need to compile. The
 * event loop runs between two functions: otherwise signals would wait, and closed connections would seem open.
 */
export async function tryFunctions(trial: Trial): Promise<string[]> {
  const faults: string[] = []
  for (const tried of trial.functions) {
    faults.push(...firstFault(tried, trial))
    await nextTurn()
  }
  return faults
}

function firstFault(tried: TriedFunction, trial: Trial): string[] {
  for (const { name, run } of casesOf(tried, trial)) {
    try {
      run()
    } catch (thrown) {
      return [`${tried.file}: threw on ${name}: ${inWords(thrown)}`]
    }
  }
  return []
}

function casesOf(tried: TriedFunction, trial: Trial): Case[] {
  const { path } = tried
  if (/^(views\/[^/]+\/map|(indexes|nouveau)\/[^/]+\/index)$/.test(path)) return mapCases(tried, trial)
  if (/^views\/[^/]+\/reduce$/.test(path)) return reduceCases(tried, trial)
  if (/^filters\/[^/]+$/.test(path)) return filterCases(tried, trial)
  if (path === 'validate_doc_update') return validateCases(tried, trial)
  return []
}

const mapCases = (tried: TriedFunction, trial: Trial): Case[] =>
  samplesFor(tried, trial).map(({ name, doc }) => ({ name, run: () => trial.sandbox.call(tried.fn, null, [doc]) }))

/** Search gets design documents, nouveau does not, and a view only with `include_design`. */
function samplesFor({ path }: TriedFunction, { ddoc, samples }: Trial): readonly Sample[] {
  const { include_design: includesDesign } = Object(ddoc.options) as { include_design?: unknown }
  const seen = path.startsWith('indexes/') || (path.startsWith('views/') && includesDesign === true)
  return seen ? samples : samples.filter((sample) => !isDesign(sample))
}

/** Every document, including design documents and a deleted one, in each request of each kind of user. */
const filterCases = ({ fn }: TriedFunction, { sandbox, samples, ddoc }: Trial): Case[] =>
  [...samples, tombstone].flatMap(({ name, doc }) =>
    sampleRequests.map(({ how, req }) => ({
      name: `${name}, ${how}`,
      run: () => sandbox.call(fn, ddoc, [stored(doc), req]),
    })),
  )

/** The rows that the view's map emits for the samples, and the results of the reduce itself. */
function reduceCases({ fn, path }: TriedFunction, trial: Trial): Case[] {
  const { sandbox, functions } = trial
  const map = functions.find((other) => other.path === path.replace(/reduce$/, 'map'))
  const rows = map ? samplesFor(map, trial).flatMap(({ doc }) => rowsOf(map, doc, sandbox)) : []
  if (rows.length === 0) return []
  const keys = rows.map(([key], index) => [key, `sample-${index}`])
  const values = rows.map(([, value]) => value)
  const reduce = () => sandbox.call(fn, null, [keys, values, false]).result ?? null
  return [
    { name: 'the rows of all samples', run: reduce },
    { name: 'its own results', run: () => sandbox.call(fn, null, [null, [reduce(), reduce()], true]) },
  ]
}

function rowsOf({ fn }: TriedFunction, doc: Doc, sandbox: Sandbox): Row[] {
  try {
    return sandbox.call(fn, null, [doc]).emitted
  } catch {
    return [] // the trial of the map reports this
  }
}

/** Each sample as a new, changed, deleted and recreated document, written by each kind of user. */
function validateCases({ fn }: TriedFunction, { sandbox, samples, ddoc }: Trial): Case[] {
  const writes = samples
    .filter((sample) => !isDesign(sample)) // CouchDB does not validate design documents
    .flatMap(({ name, doc }) => [
      { name: `${name} (new)`, args: [doc, null] },
      { name: `${name} (changed)`, args: [stored(doc), stored(doc)] },
      { name: `${name} (deleted)`, args: [stored({ ...tombstone.doc, _id: doc._id }), stored(doc)] },
      { name: `${name} (written over a deleted one)`, args: [stored(doc), stored({ ...tombstone.doc, _id: doc._id })] },
    ])
  return [...writes, { name: tombstone.name, args: [stored(tombstone.doc), null] }].flatMap(({ name, args }) =>
    sampleUsers.map(({ who, userCtx }) => ({
      name: `${name}, written by ${who}`,
      run: () => orRefuse(() => sandbox.call(fn, ddoc, [...args, userCtx, sampleSecurity])),
    })),
  )
}

/** A refusal also passes: CouchDB answers 403 or 401. For any other thrown value it answers 500. */
function orRefuse(validate: () => unknown): void {
  try {
    validate()
  } catch (thrown) {
    const { forbidden, unauthorized } = Object(thrown) as { forbidden?: unknown; unauthorized?: unknown }
    if (typeof forbidden !== 'string' && typeof unauthorized !== 'string') throw thrown
  }
}

/** Text of a thrown value. Errors from the sandbox belong to another realm: `instanceof Error` is false. */
export function inWords(thrown: unknown): string {
  if (typeof thrown === 'object' && thrown !== null && 'message' in thrown && 'name' in thrown) {
    const message = String(thrown.message)
    return `${String(thrown.name)}: ${message}${adviceOn(message)}`
  }
  return typeof thrown === 'object' ? JSON.stringify(thrown) : failureOf(thrown).reason
}
