import { expect, test } from 'vitest'
import { Queue } from '../../sidecar/core/queue.ts'

const drain = (queue: Queue) => {
  const names: string[] = []
  for (let name; (name = queue.take()) !== undefined;) names.push(name)
  return names
}

test('a name is queued once, at its first position', () => {
  const queue = new Queue()
  for (const name of ['a', 'b', 'a', 'c', 'b']) queue.add(name)
  expect([queue.size, drain(queue), queue.size]).toEqual([3, ['a', 'b', 'c'], 0])
})

test('a delayed name is due at the earliest of its times', () => {
  const queue = new Queue()
  queue.addAt('a', 300)
  queue.addAt('a', 100)
  queue.addAt('a', 200)
  queue.addAt('b', 150)
  expect([queue.nextAt(), queue.resubmitted]).toEqual([100, 2])
  queue.ripen(99)
  expect(drain(queue)).toEqual([])
  queue.ripen(100)
  expect([drain(queue), queue.nextAt()]).toEqual([['a'], 150])
})

test('an update of a delayed name is queued at once', () => {
  const queue = new Queue()
  queue.addAt('a', 60_000)
  queue.add('a')
  expect([drain(queue), queue.nextAt()]).toEqual([['a'], undefined])
})

test('a queued name is not delayed', () => {
  const queue = new Queue()
  queue.add('a')
  queue.addAt('a', 100)
  expect([queue.size, queue.nextAt()]).toEqual([1, undefined])
})

test('a removed name is neither queued nor delayed', () => {
  const queue = new Queue()
  queue.add('a')
  queue.addAt('b', 1)
  queue.remove('a')
  queue.remove('b')
  queue.ripen(2)
  expect(drain(queue)).toEqual([])
})
