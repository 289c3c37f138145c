import { expect, test } from 'vitest'
import { Semaphore } from '../../sidecar/core/semaphore.ts'

test('a semaphore gives no more permits than its limit, and a raised limit admits more', async () => {
  let limit = 1
  const semaphore = new Semaphore(() => limit)
  let inside = 0
  const enter = () => semaphore.enter().then(() => (inside += 1))
  await enter()
  const others = [enter(), enter(), enter()]
  await new Promise(setImmediate)
  expect(inside).toBe(1)
  limit = 3
  semaphore.leave()
  await Promise.all(others)
  expect(inside).toBe(4)
})

test('permits go in the order of the requests, and an aborted request takes none', async () => {
  const semaphore = new Semaphore(() => 1)
  const order: string[] = []
  await semaphore.enter()
  const leaving = new AbortController()
  const left = semaphore.enter(true, leaving.signal)
  for (const name of ['a', 'b']) semaphore.take(() => order.push(name))
  for (const name of ['c', 'd']) semaphore.take(() => order.push(name), true)
  leaving.abort(new Error('enough'))
  await expect(left).rejects.toThrow('enough')
  for (let i = 0; i < 5; i++) semaphore.leave()
  expect(order).toEqual(['c', 'd', 'a', 'b'])
  await semaphore.run(() => Promise.resolve()) // all permits are free again
})

test('thousands of permits released at once are all free', () => {
  const semaphore = new Semaphore(() => 1)
  let taken = 0
  semaphore.take(() => undefined)
  for (let i = 0; i < 20_000; i++) {
    semaphore.take(() => {
      taken += 1
      semaphore.leave()
    })
  }
  semaphore.leave()
  semaphore.take(() => (taken += 1))
  expect(taken).toBe(20_001)
})
