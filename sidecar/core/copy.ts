/** A copy of what came as JSON, to be changed without anybody noticing. Several times as fast as `structuredClone`. */
export function copyJson<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(copyJson) as T
  const copy = { ...value } as Record<string, unknown> // keeps a field called __proto__, which assigning to {} would not
  for (const key in copy) if (typeof copy[key] === 'object') copy[key] = copyJson(copy[key])
  return copy as T
}
