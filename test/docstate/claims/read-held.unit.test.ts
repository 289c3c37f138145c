import { expect, test } from 'vitest'
import { Semaphore } from '../../../sidecar/core/semaphore.ts'
import { createReadHeld } from '../../../sidecar/docstate/claims/read-held.ts'
import { createLatch } from '../rig.ts'

test('certain claims are read first, and one database never takes all turns', async () => {
  const { signal } = new AbortController()
  const [turns, answer] = [new Semaphore(() => 6), createLatch()]
  const [silent, other] = [1, 2].map(() => createReadHeld({ turns, timeoutMs: 1000, signal }))
  const requested: string[] = []
  const about = (what: string) => async () => {
    requested.push(what)
    await answer.opened
  }
  const waiting = [1, 2, 3, 4, 5].map((i) => silent!(about(`perhaps ${i}`)))
  waiting.push(silent!(about('held'), true))
  await new Promise(setImmediate)
  expect(requested).toEqual(['perhaps 1', 'perhaps 2', 'perhaps 3', 'perhaps 4'])
  expect(await other!(({ first, timeoutMs }) => Promise.resolve({ first, timeoutMs }))).toEqual({
    first: true,
    timeoutMs: 1000,
  })
  answer.open()
  await Promise.all(waiting)
  expect(requested.slice(4)).toEqual(['held', 'perhaps 5'])
})

test('an abort rejects waiting requests and releases their turns', async () => {
  const over = new AbortController()
  const turns = new Semaphore(() => 1)
  const ask = createReadHeld({ turns, timeoutMs: 1000, signal: over.signal })
  await turns.enter()
  const waiting = [1, 2, 3, 4, 5].map(() =>
    ask(() => Promise.resolve('asked')).catch((thrown: Error) => thrown.message),
  )
  over.abort(new Error('it is over'))
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => 'it is over'))
  turns.leave()
  await turns.enter()
})
