import { expect, test } from 'vitest'
import { Semaphore } from '../../../sidecar/core/semaphore.ts'
import { createAskHeld } from '../../../sidecar/docstate/claims/ask-held.ts'
import { createLatch } from '../rig.ts'

test('what is held for certain is asked about first, and never so much of one database that no turn is left', async () => {
  const { signal } = new AbortController()
  const [turns, answer] = [new Semaphore(() => 6), createLatch()]
  const [silent, other] = [1, 2].map(() => createAskHeld({ turns, timeoutMs: 1000, signal }))
  const asked: string[] = []
  const about = (what: string) => async () => {
    asked.push(what)
    await answer.opened
  }
  const waiting = [1, 2, 3, 4, 5].map((i) => silent!(about(`perhaps ${i}`)))
  waiting.push(silent!(about('held'), true))
  await new Promise(setImmediate)
  expect(asked).toEqual(['perhaps 1', 'perhaps 2', 'perhaps 3', 'perhaps 4'])
  expect(await other!(({ first, timeoutMs }) => Promise.resolve({ first, timeoutMs }))).toEqual({
    first: true,
    timeoutMs: 1000,
  })
  answer.open()
  await Promise.all(waiting)
  expect(asked.slice(4)).toEqual(['held', 'perhaps 5'])
})

test('whoever waits is told when it is over, and takes no turn with it', async () => {
  const over = new AbortController()
  const turns = new Semaphore(() => 1)
  const ask = createAskHeld({ turns, timeoutMs: 1000, signal: over.signal })
  await turns.enter()
  const waiting = [1, 2, 3, 4, 5].map(() =>
    ask(() => Promise.resolve('asked')).catch((thrown: Error) => thrown.message),
  )
  over.abort(new Error('it is over'))
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => 'it is over'))
  turns.leave()
  await turns.enter()
})
