import { expect, test } from 'vitest'
import { createMutex } from '../../sidecar/core/mutex.ts'
import { Semaphore } from '../../sidecar/core/semaphore.ts'

test('gives no more places than the limit, and a raised limit lets more in', async () => {
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

test('places go to those who ask for them first, and whoever does not wait any more takes none', async () => {
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
  await semaphore.run(() => Promise.resolve()) // all are free again
})

test('thousands that give their places back at once leave all of them free', () => {
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

test('work under a mutex runs one at a time, and a failure does not stop the next', async () => {
  const mutex = createMutex()
  const log: string[] = []
  const work = (name: string) => async () => {
    log.push(`${name} begins`)
    await new Promise(setImmediate)
    log.push(`${name} ends`)
    if (name === 'a') throw new Error('a failed')
    return name
  }
  const [a, b] = [mutex(work('a')), mutex(work('b'))]
  await expect(a).rejects.toThrow('a failed')
  await expect(b).resolves.toBe('b')
  expect(log).toEqual(['a begins', 'a ends', 'b begins', 'b ends'])
})
