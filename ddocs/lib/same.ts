/** Whether two values have the same JSON, in any order of keys. An undefined key counts as absent. */
export function same(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false
  if (Array.isArray(one) !== Array.isArray(other)) return false
  const [a, b] = [one as Record<string, unknown>, other as Record<string, unknown>]
  return Object.keys(a)
    .concat(Object.keys(b))
    .every((key) => same(a[key], b[key]))
}
