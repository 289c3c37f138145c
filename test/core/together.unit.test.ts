import { expect, test } from 'vitest'
import { together } from '../../sidecar/core/together.ts'

const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))

test('all parts run until the signal aborts, and its reason is not thrown', async () => {
  const stopping = new AbortController()
  let ended = 0
  const part = async (signal: AbortSignal) => {
    await untilAborted(signal)
    ended += 1
    signal.throwIfAborted()
  }
  const running = together([part, part], stopping.signal)
  stopping.abort(new Error('stopped'))
  await running
  expect(ended).toBe(2)
})

test('an error of one part ends the others, and is thrown after their end', async () => {
  let ended = false
  const other = async (signal: AbortSignal) => {
    await untilAborted(signal)
    await Promise.resolve()
    ended = true
  }
  const running = together([other, () => Promise.reject(new Error('a mistake'))], new AbortController().signal)
  await expect(running).rejects.toThrow('a mistake')
  expect(ended).toBe(true)
})
