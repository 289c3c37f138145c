/** A copy of what came as JSON, to be changed without side effects. Several times as fast as `structuredClone`. */
export function copyJson<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(copyJson) as T
  const copy = { ...value } as Record<string, unknown> // keeps a field called __proto__, which assigning to {} would not
  for (const key in copy) if (typeof copy[key] === 'object') copy[key] = copyJson(copy[key])
  return copy as T
}

/** A half of a surrogate pair as `JSON.stringify` writes it, which CouchDB refuses: it has no UTF-8. */
const HALF = /(?:^|[^\\])(?:\\\\)*\\ud[89a-f]/

/** What CouchDB would get of any value: its JSON, taken once. Throws where there is none, and what getters throw. */
export function jsonOf(value: unknown): unknown {
  const text = JSON.stringify(value) as string | undefined
  if (text === undefined) throw new TypeError('JSON has nothing for it')
  if (HALF.test(text)) throw new TypeError('half a surrogate pair has no UTF-8')
  return JSON.parse(text)
}
