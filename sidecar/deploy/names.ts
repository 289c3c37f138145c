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

export const isAvailable = (name: string): boolean => available.has(name)

/** What the language has and one of the engines has not: taken away before functions are tried. */
export const missingMethods = { String: ['localeCompare', 'normalize'] } as const

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

/** The fault of using a name that is not available; `guarded` if `typeof` asks for it somewhere. */
export function missingFault(place: string, name: string, guarded = false): string {
  const advice = Object.hasOwn(instead, name) ? instead[name] : 'import it, or do without'
  const note = guarded ? ' (whether it is used only where typeof has found it is not judged)' : ''
  return `${place}: CouchDB has no ${name} in design documents: ${advice}${note}`
}
