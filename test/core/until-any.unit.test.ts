import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { untilAny } from '../../sidecar/core/until-any.ts'

const aborted = (until: AbortSignal) =>
  new Promise<unknown>((resolve) => until.addEventListener('abort', () => resolve(until.reason)))

test.each([0, 1])('the first signal that aborts ends the work with its reason: %i', async (which) => {
  const both = [new AbortController(), new AbortController()]
  const ended = untilAny(
    both.map(({ signal }) => signal),
    aborted,
  )
  const reason = new Error('enough')
  both[which]!.abort(reason)
  both[1 - which]!.abort(new Error('too late'))
  expect(await ended).toBe(reason)
})

test('a signal that has already aborted ends the work at once', async () => {
  const reason = new Error('long ago')
  const signals = [new AbortController().signal, AbortSignal.abort(reason)]
  expect(await untilAny(signals, (until) => Promise.resolve(until.reason as unknown))).toBe(reason)
})

test.each([
  ['done', () => Promise.resolve(1)],
  ['failed', () => Promise.reject(new Error('no'))],
])('no listener remains when the work is %s', async (_, work) => {
  const { signal } = new AbortController()
  const working = untilAny([signal], work)
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  await working.catch(() => undefined)
  expect(getEventListeners(signal, 'abort')).toEqual([])
})
