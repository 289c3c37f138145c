import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../sidecar/core/clock.ts'
import { Condition } from '../../sidecar/core/condition.ts'
import { onAbort } from '../../sidecar/core/on-abort.ts'
import { Semaphore } from '../../sidecar/core/semaphore.ts'

test('any number of listeners can wait for one signal without a leak warning of Node', async () => {
  const warnings: string[] = []
  const onWarning = ({ name }: Error) => void warnings.push(name)
  process.on('warning', onWarning)
  onTestFinished(() => void process.off('warning', onWarning))
  const waits: ((signal: AbortSignal) => Promise<unknown>)[] = [
    (signal) => systemClock.sleep(60_000, signal),
    (signal) => new Condition().until(() => false, signal),
    (signal) => new Semaphore(() => 0).enter(false, signal),
  ]
  for (const wait of waits) {
    const ending = new AbortController()
    const waiting = Promise.allSettled(Array.from({ length: 20 }, () => wait(ending.signal)))
    ending.abort(new Error('over'))
    const ended = await waiting
    expect(ended.every((one) => one.status === 'rejected' && one.reason === ending.signal.reason)).toBe(true)
  }
  await nextTurn()
  expect(warnings).toEqual([])
})

test('a removed listener is not called, and without a signal no listener is called', () => {
  const ending = new AbortController()
  const called: string[] = []
  onAbort(ending.signal, () => called.push('left'))
  onAbort(ending.signal, () => called.push('taken back'))()
  onAbort(undefined, () => called.push('never'))()
  ending.abort()
  expect(called).toEqual(['left'])
})
