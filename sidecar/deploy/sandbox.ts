import { createContext, runInContext } from 'node:vm'
import { languageNames, missingMethods } from './language-names.ts'

/** CouchDB kills its query server after 5 s (`[couchdb] os_process_timeout`). A sample needs far less. */
const TIMEOUT_MS = 2000

/** A stand-in for CouchDB's query server: it defines only the names that every engine has. */
export interface Sandbox {
  /** Returns the value of an expression. Throws what the expression throws. */
  evaluate(expression: string, file: string): unknown
  /** Returns the result and the emitted rows of `fn`. As in CouchDB, the arguments are JSON and frozen. */
  call(fn: unknown, self: unknown, args: readonly unknown[]): { readonly result: unknown; readonly emitted: Row[] }
}

/** Arguments of `emit`, as JSON. */
export type Row = readonly [key: unknown, value: unknown]

/** Removes names that the engines lack. Runs inside the context, where `this` is the global object. */
const PRUNE = `(function (names, methods) {
  for (const name of Object.getOwnPropertyNames(this)) if (names.indexOf(name) < 0) delete this[name]
  for (const type in methods) for (const method of methods[type]) delete this[type].prototype[method]
}).call(this, ...JSON.parse(limits))`

/** Parses the arguments inside the context, so that they belong to the realm of the functions. */
const CALL = `(function (fn, self, args) {
  function freeze(value) {
    if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(freeze)
    return value
  }
  return fn.apply(JSON.parse(self), freeze(JSON.parse(args)))
})(call.fn, call.self, call.args)`

export function createSandbox(): Sandbox {
  let emitted: string[] = []
  const put = (key: unknown = null, value: unknown = null) => void emitted.push(JSON.stringify([key, value]))
  const couchdb = {
    emit: put,
    index: put,
    log: () => undefined,
    sum: (values: number[]) => values.reduce((total, value) => total + value, 0),
    isArray: Array.isArray,
    toJSON: JSON.stringify,
    ...Object.fromEntries(['getRow', 'provides', 'registerType', 'send', 'start'].map((name) => [name, () => null])),
  }
  const limits = JSON.stringify([[...languageNames, ...Object.keys(couchdb)], missingMethods])
  const context = createContext({ ...couchdb, limits })
  runInContext(PRUNE, context)

  return {
    evaluate: (expression, file) =>
      runInContext(expression, context, { filename: file, timeout: TIMEOUT_MS }) as unknown,
    call(fn, self, args) {
      emitted = []
      context.call = { fn, self: JSON.stringify(self ?? null), args: JSON.stringify(args) }
      try {
        const result = runInContext(CALL, context, { timeout: TIMEOUT_MS }) as unknown
        return { result: plain(result), emitted: emitted.map((row) => JSON.parse(row) as Row) }
      } finally {
        delete context.call
      }
    },
  }
}

/** The value after a round trip through JSON; undefined if it has no JSON. */
function plain(value: unknown): unknown {
  const json = JSON.stringify(value) as string | undefined
  return json === undefined ? undefined : JSON.parse(json)
}
