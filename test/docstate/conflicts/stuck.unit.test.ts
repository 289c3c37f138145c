import { expect, test } from 'vitest'
import { Stuck } from '../../../sidecar/docstate/waits.ts'

const doc = (fields: object = {}) => ({ _id: 'o', _rev: '4-d', _conflicts: ['3-c', '2-b'], ...fields })

test('a stuck conflict is reported once, and its delay grows with each attempt', () => {
  let now = 0
  const stuck = new Stuck(() => now)
  expect(stuck.remaining(doc())).toBe(0)
  expect(stuck.add(doc())).toBe(true)
  expect(stuck.remaining(doc())).toBe(30_000)
  now = 30_000
  expect(stuck.remaining(doc())).toBe(0)
  expect(stuck.add(doc())).toBe(false)
  expect(stuck.remaining(doc())).toBe(60_000)
  for (let tries = 0; tries < 20; tries++) stuck.add(doc())
  expect(stuck.remaining(doc())).toBe(3_600_000)
})

test('a stuck conflict is retried at once after a change and forgotten after its resolution', () => {
  const stuck = new Stuck(() => 0)
  stuck.add(doc())
  expect(stuck.remaining(doc({ _conflicts: ['2-b', '3-c'] }))).toBe(30_000)
  expect(stuck.remaining(doc({ _rev: '5-e' }))).toBe(0)
  expect(stuck.remaining(doc({ _conflicts: ['3-c'] }))).toBe(0)
  stuck.forget('o')
  expect(stuck.add(doc())).toBe(true)
})
