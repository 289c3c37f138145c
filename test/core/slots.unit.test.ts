import { expect, test } from 'vitest'
import { createExclusive } from '../../sidecar/core/exclusive.ts'
import { Slots } from '../../sidecar/core/slots.ts'

test('gives no more places than the limit, and a raised limit lets more in', async () => {
  let limit = 1
  const slots = new Slots(() => limit)
  let inside = 0
  const enter = () => slots.enter().then(() => (inside += 1))
  await enter()
  const others = [enter(), enter(), enter()]
  await new Promise(setImmediate)
  expect(inside).toBe(1)
  limit = 3
  slots.leave()
  await Promise.all(others)
  expect(inside).toBe(4)
})

test('places go to those who ask for them first, and whoever does not wait any more takes none', async () => {
  const slots = new Slots(() => 1)
  const order: string[] = []
  await slots.enter()
  const leaving = new AbortController()
  const left = slots.enter(true, leaving.signal)
  for (const name of ['a', 'b']) slots.take(() => order.push(name))
  for (const name of ['c', 'd']) slots.take(() => order.push(name), true)
  leaving.abort(new Error('enough'))
  await expect(left).rejects.toThrow('enough')
  for (let i = 0; i < 5; i++) slots.leave()
  expect(order).toEqual(['c', 'd', 'a', 'b'])
  await slots.during(() => Promise.resolve()) // all are free again
})

test('thousands that give their places back at once leave all of them free', () => {
  const slots = new Slots(() => 1)
  let taken = 0
  slots.take(() => undefined)
  for (let i = 0; i < 20_000; i++) {
    slots.take(() => {
      taken += 1
      slots.leave()
    })
  }
  slots.leave()
  slots.take(() => (taken += 1))
  expect(taken).toBe(20_001)
})

test('exclusive work runs one at a time, and a failure does not stop the next', async () => {
  const exclusive = createExclusive()
  const log: string[] = []
  const work = (name: string) => async () => {
    log.push(`${name} begins`)
    await new Promise(setImmediate)
    log.push(`${name} ends`)
    if (name === 'a') throw new Error('a failed')
    return name
  }
  const [a, b] = [exclusive(work('a')), exclusive(work('b'))]
  await expect(a).rejects.toThrow('a failed')
  await expect(b).resolves.toBe('b')
  expect(log).toEqual(['a begins', 'a ends', 'b begins', 'b ends'])
})
