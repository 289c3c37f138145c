import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createMutex, createMutexByKey } from '../../sidecar/core/mutex.ts'

test('a mutex runs one task at a time, in order, and a failed task stops no other', async () => {
  const mutex = createMutex()
  const seen: string[] = []
  const work = (name: string) => async () => {
    seen.push(`${name} begins`)
    await delay(5)
    seen.push(`${name} ends`)
    if (name === 'b') throw new Error('b has failed')
    return name
  }
  const all = await Promise.allSettled(['a', 'b', 'c'].map((name) => mutex(work(name))))
  expect(seen).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
  expect(all.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

test('other keys do not wait, and a key can be locked again after all of its tasks', async () => {
  const mutex = createMutexByKey()
  let end: (() => void) | undefined
  const first = mutex('a', () => new Promise<void>((resolve) => (end = resolve)))
  const seen: string[] = []
  const second = mutex('a', () => seen.push('a'))
  await mutex('b', () => seen.push('b'))
  expect(seen).toEqual(['b'])
  end!()
  await Promise.all([first, second])
  await expect(mutex('a', () => Promise.reject(new Error('a has failed')))).rejects.toThrow('a has failed')
  expect(await mutex('a', () => 'again')).toBe('again')
  expect(seen).toEqual(['b', 'a'])
})
