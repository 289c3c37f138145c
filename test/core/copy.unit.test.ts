import { expect, test } from 'vitest'
import { copyJson } from '../../sidecar/core/copy.ts'

test.each([
  '{"a":[1,{"b":null}],"c":{"d":"e","f":[]},"g":true}',
  '{"__proto__":{"x":[1]},"deep":{"__proto__":{"y":{"z":2}},"constructor":{"prototype":1}}}',
  '[[],{},"",0,null]',
  'null',
  '"text"',
])('a copy of %s is equal, and shares no object with the original', (text) => {
  const value = JSON.parse(text) as unknown
  const copy = copyJson(value)
  expect(JSON.stringify(copy)).toBe(text)
  spoil(copy)
  expect(JSON.stringify(value)).toBe(text)
})

/** Changes every nested object and array, with any field names. */
function spoil(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  for (const key of Object.keys(value)) spoil(Reflect.get(value, key))
  if (Array.isArray(value)) value.push('spoilt')
  else Object.defineProperty(value, 'spoilt', { value: true, enumerable: true })
}
