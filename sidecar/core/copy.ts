/** A copy of what came as JSON, to be changed without anybody noticing. Several times as fast as `structuredClone`. */
export function copyJson<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(copyJson) as T
  const copy: Record<string, unknown> = {}
  for (const key in value) copy[key] = copyJson(value[key])
  return copy as T
}
