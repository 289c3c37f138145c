import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createExclusive, createExclusiveByKey } from '../../sidecar/core/exclusive.ts'

test('one piece of work at a time, in order, and one that fails stops none', async () => {
  const exclusive = createExclusive()
  const seen: string[] = []
  const work = (name: string) => async () => {
    seen.push(`${name} begins`)
    await delay(5)
    seen.push(`${name} ends`)
    if (name === 'b') throw new Error('b has failed')
    return name
  }
  const all = await Promise.allSettled(['a', 'b', 'c'].map((name) => exclusive(work(name))))
  expect(seen).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
  expect(all.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

test('by key: others do not wait, and a key can be asked for again when all of its work is done', async () => {
  const exclusive = createExclusiveByKey()
  let end: (() => void) | undefined
  const first = exclusive('a', () => new Promise<void>((resolve) => (end = resolve)))
  const seen: string[] = []
  const second = exclusive('a', () => seen.push('a'))
  await exclusive('b', () => seen.push('b'))
  expect(seen).toEqual(['b'])
  end!()
  await Promise.all([first, second])
  await expect(exclusive('a', () => Promise.reject(new Error('a has failed')))).rejects.toThrow('a has failed')
  expect(await exclusive('a', () => 'again')).toBe('again')
  expect(seen).toEqual(['b', 'a'])
})
