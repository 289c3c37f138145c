/**
 * The names that a function of a design document can use, on every engine: what both SpiderMonkey (60 and later) and
 * CouchDB's QuickJS define, up to ES2017. Taken from running servers: a function that throws
 * `Object.getOwnPropertyNames(this)`.
 */
const language = `
  Array Boolean Date Error EvalError Function Infinity JSON Map Math NaN Number Object RangeError ReferenceError Reflect
  RegExp Set String Symbol SyntaxError TypeError URIError WeakMap WeakSet arguments decodeURI decodeURIComponent
  encodeURI encodeURIComponent escape isFinite isNaN parseFloat parseInt undefined unescape`

const couchdb = 'emit getRow index isArray log provides registerType send start sum toJSON'

const wordsOf = (text: string) => text.trim().split(/\s+/)

export const languageNames: ReadonlySet<string> = new Set(wordsOf(language))

const available: ReadonlySet<string> = new Set([...languageNames, ...wordsOf(couchdb)])

/** What only some engines have: it may be used where `typeof` has found it. */
const onSomeEngines: ReadonlySet<string> = new Set(
  wordsOf(`
    AggregateError ArrayBuffer Atomics BigInt BigInt64Array BigUint64Array DataView FinalizationRegistry Float32Array
    Float64Array Int16Array Int32Array Int8Array Intl Iterator Promise Proxy SharedArrayBuffer Uint16Array Uint32Array Uint8Array
    Uint8ClampedArray WeakRef WebAssembly console globalThis`),
)

export const isOnSomeEngines = (name: string): boolean => onSomeEngines.has(name)

export const isAvailable = (name: string): boolean => available.has(name)

/** What the language has and one of the engines has not: taken away before functions are tried. */
export const missingMethods = { String: ['localeCompare', 'normalize'] } as const

/** What to do about a method that is missing, if the message of an error is about one; otherwise nothing. */
export function adviceOn(message: string): string {
  const [, name = ''] = /\b(normalize|localeCompare) is not a function/.exec(message) ?? []
  if (name === '') return ''
  const advice = name === 'normalize' ? "import 'unorm' first, or another package that adds it" : 'compare by < and >'
  return `; CouchDB's QuickJS has no ${name}: ${advice}`
}

const instead: Readonly<Record<string, string>> = {
  ...sayFor('Promise setTimeout setInterval setImmediate queueMicrotask', 'a function must be done when it returns'),
  ...sayFor('fetch XMLHttpRequest', 'a function sees the document and nothing else'),
  ...sayFor('process global window self navigator', 'there is no Node and no browser'),
  ...sayFor('require module exports', 'write import and export: what is imported becomes part of the function'),
  ...sayFor('console', 'log() writes into the log of CouchDB'),
  ...sayFor('globalThis', 'name the global itself'),
  ...sayFor('Buffer btoa atob TextEncoder TextDecoder', 'import a library that is plain JavaScript'),
  ...sayFor(
    'Intl Proxy WeakRef BigInt ArrayBuffer Uint8Array',
    'the QuickJS of CouchDB, or an older SpiderMonkey, lacks it',
  ),
  ...sayFor('eval', 'what it runs cannot be checked'),
}

function sayFor(names: string, advice: string): Record<string, string> {
  return Object.fromEntries(wordsOf(names).map((name) => [name, advice]))
}

/** The fault of using a name that is not available. */
export function missingFault(place: string, name: string): string {
  const advice = Object.hasOwn(instead, name) ? instead[name] : 'import it, or do without'
  return `${place}: CouchDB has no ${name} in design documents: ${advice}`
}
