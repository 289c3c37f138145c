import { expect, test } from 'vitest'
import { createByteBudget } from '../../sidecar/core/byte-budget.ts'

const open = new AbortController().signal

/** The number of times that this many bytes are admitted. */
function fill(share: { tryEnter(bytes: number): boolean }, bytes: number): number {
  for (let count = 0; ; count++) if (!share.tryEnter(bytes)) return count
}

test('a share that takes all it can leaves half of the free bytes to the others', () => {
  const byteBudget = createByteBudget(100)
  const [hog, second, third] = [byteBudget.share(), byteBudget.share(), byteBudget.share()]
  expect(fill(hog, 1)).toBe(50)
  expect(fill(second, 1)).toBe(25)
  expect(fill(third, 1)).toBe(12)
})

test('each share can hold one item of any size, regardless of the others', () => {
  const byteBudget = createByteBudget(100)
  const [hog, other] = [byteBudget.share(), byteBudget.share()]
  expect(fill(hog, 500)).toBe(1)
  expect(fill(other, 300)).toBe(1)
  other.leave(300)
  expect(fill(other, 1), 'the first share holds all bytes').toBe(1)
})

test('after a refusal a share is full until half of its room is free', async () => {
  const share = createByteBudget(100).share()
  expect(fill(share, 10)).toBe(5)
  await expect(Promise.race([share.whenRoom(open), Promise.resolve('waits')])).resolves.toBe('waits')
  share.leave(10)
  expect(share.full, '40 held, 60 free').toBe(true)
  expect(share.tryEnter(1)).toBe(false)
  share.leave(10)
  await share.whenRoom(open)
  expect(fill(share, 10)).toBe(2)
})

test('bytes that other shares release also make room', async () => {
  const byteBudget = createByteBudget(100)
  const [hog, other] = [byteBudget.share(), byteBudget.share()]
  fill(hog, 10)
  expect(fill(other, 20)).toBe(1)
  const room = other.whenRoom(open)
  hog.leave(10)
  await room
  expect(other.tryEnter(10)).toBe(true)
})

test('an abort ends the wait for room', async () => {
  const share = createByteBudget(100).share()
  fill(share, 50)
  const leaving = new AbortController()
  const waiting = share.whenRoom(leaving.signal)
  leaving.abort(new Error('gone'))
  await expect(waiting).rejects.toThrow('gone')
  await expect(share.whenRoom(leaving.signal)).rejects.toThrow('gone')
})

test('the budget knows the bytes that all shares hold together', () => {
  const byteBudget = createByteBudget(100)
  const [first, second] = [byteBudget.share(), byteBudget.share()]
  first.tryEnter(30)
  second.tryEnter(500)
  expect(byteBudget).toMatchObject({ budget: 100, used: 530 })
  second.leave(500)
  expect(byteBudget.used).toBe(30)
})
