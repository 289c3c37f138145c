import { expect, test } from 'vitest'
import { createRendezvous } from '../../sidecar/workers/rendezvous.ts'

const docs = Array.from({ length: 20_000 }, (_, i) => `order-${i}`)
const names = (count: number) => Array.from({ length: count }, (_, i) => `host-${i}`)

function sharesOf(workers: readonly string[]): Map<string, number> {
  const responsible = createRendezvous(workers)
  const shares = new Map<string, number>()
  for (const doc of docs) shares.set(responsible(doc)!, (shares.get(responsible(doc)!) ?? 0) + 1)
  return shares
}

test.each([2, 3, 10, 100])('%d workers have about equal partitions', (count) => {
  const shares = [...sharesOf(names(count)).values()]
  const ideal = docs.length / count
  expect(shares).toHaveLength(count)
  for (const share of shares) expect(Math.abs(share - ideal)).toBeLessThan(5 * Math.sqrt(ideal))
})

test.each([3, 10, 100])('adding a worker to %d moves only its own partition, and so does removing one', (count) => {
  const [before, after] = [createRendezvous(names(count)), createRendezvous(names(count + 1))]
  const moved = docs.filter((doc) => before(doc) !== after(doc))
  expect(new Set(moved.map(after))).toEqual(new Set([`host-${count}`]))
  const ideal = docs.length / (count + 1)
  expect(Math.abs(moved.length - ideal)).toBeLessThan(5 * Math.sqrt(ideal))
})

test('the order of the workers does not matter', () => {
  const [one, other] = [createRendezvous(['a', 'b', 'c']), createRendezvous(['c', 'a', 'b'])]
  expect(docs.filter((doc) => one(doc) !== other(doc))).toEqual([])
  expect(createRendezvous([])('x')).toBeUndefined()
})
