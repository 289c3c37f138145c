import { expect, test } from 'vitest'
import { BranchLeases } from '../../../sidecar/docstate/waits.ts'

const claimed = (_rev: string, token: string, claim: object = { worker: 'w', token, at: '', lease_ms: 2000 }) => ({
  ...{ _id: 'o', _rev, type: 'order', state: 'paid', docstate: { state: 'paid', claim } },
})

test('the latest lease of all branches counts, and a renewal extends it', () => {
  let now = 0
  const leases = new BranchLeases(() => now)
  const [a, b] = [claimed('2-a', 'a'), claimed('2-b', 'b')]
  expect(leases.remaining('o', [{ _id: 'o', _rev: '3-c' }, a])).toBe(2000)
  now = 1000
  expect(leases.remaining('o', [a, b])).toBe(2000)
  expect(leases.remaining('o', [a])).toBe(1000)
  expect(leases.remaining('o', [claimed('3-a', 'a')])).toBe(2000)
  now = 3000
  expect(leases.remaining('o', [claimed('3-a', 'a'), b])).toBe(0)
})

test('an invalid claim written by a client is ignored', () => {
  const leases = new BranchLeases(() => 0)
  const live = claimed('2-a', 'a')
  expect(leases.remaining('o', [claimed('2-b', '', {}), live])).toBe(2000)
  expect(leases.remaining('o', [claimed('2-b', '', {})])).toBe(0)
})

test('leases of documents that are no longer read are forgotten', () => {
  let now = 0
  const leases = new BranchLeases(() => now)
  for (let i = 0; i < 1000; i++) leases.remaining(`o${i}`, [claimed('2-a', 'a')])
  expect(leases.size).toBe(1000)
  for (; now < 3_600_000; now += 60_000) leases.remaining('o', [claimed('2-a', 'a')])
  expect(leases.size).toBe(1)
  leases.forget('o')
  expect(leases.size).toBe(0)
})
