/**
 * Names that a function of a design document can use on every engine. Both SpiderMonkey (60 and later) and CouchDB's
 * QuickJS define them, up to ES2017. The list comes from running servers: from a function that throws
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

/** Names that only some engines have: code may use one after a `typeof` test for it. */
const onSomeEngines: ReadonlySet<string> = new Set(
  wordsOf(`
    AggregateError ArrayBuffer Atomics BigInt BigInt64Array BigUint64Array DataView FinalizationRegistry Float32Array
    Float64Array Int16Array Int32Array Int8Array Intl Iterator Promise Proxy SharedArrayBuffer Uint16Array Uint32Array Uint8Array
    Uint8ClampedArray WeakRef WebAssembly console globalThis`),
)

export const isOnSomeEngines = (name: string): boolean => onSomeEngines.has(name)

export const isAvailable = (name: string): boolean => available.has(name)

/** Methods of the language that an engine lacks: the sandbox removes them before functions are tried. */
export const missingMethods = { String: ['localeCompare', 'normalize'] } as const

/** Advice if the message of an error concerns a missing method; otherwise an empty text. */
export function adviceOn(message: string): string {
  const [, name = ''] = /\b(normalize|localeCompare) is not a function/.exec(message) ?? []
  if (name === '') return ''
  const advice = name === 'normalize' ? "import 'unorm' first, or another package that adds it" : 'compare by < and >'
  return `; CouchDB's QuickJS has no ${name}: ${advice}`
}

const instead: Readonly<Record<string, string>> = {
  ...sayFor('Promise setTimeout setInterval setImmediate queueMicrotask', 'a function must finish before it returns'),
  ...sayFor('fetch XMLHttpRequest', 'a function sees the document and nothing else'),
  ...sayFor('process global window self navigator', 'there is no Node and no browser'),
  ...sayFor('require module exports', 'use import and export: imported code becomes part of the function'),
  ...sayFor('console', 'log() writes into the log of CouchDB'),
  ...sayFor('globalThis', 'name the global itself'),
  ...sayFor('Buffer btoa atob TextEncoder TextDecoder', 'import a library that is plain JavaScript'),
  ...sayFor(
    'Intl Proxy WeakRef BigInt ArrayBuffer Uint8Array',
    'the QuickJS of CouchDB, or an older SpiderMonkey, lacks it',
  ),
  ...sayFor('eval', 'the code that it runs cannot be checked'),
}

function sayFor(names: string, advice: string): Record<string, string> {
  return Object.fromEntries(wordsOf(names).map((name) => [name, advice]))
}

/** The fault for the use of an unavailable name. */
export function missingFault(place: string, name: string): string {
  const advice = Object.hasOwn(instead, name) ? instead[name] : 'import it, or do without'
  return `${place}: CouchDB has no ${name} in design documents: ${advice}`
}
