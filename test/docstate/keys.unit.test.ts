import { expect, test } from 'vitest'
import { keyOf, Keys } from '../../sidecar/docstate/keys.ts'
import { handlerDefaults } from '../../sidecar/docstate/handler-options.ts'
import { createLatch } from './rig.ts'

const settled = () => new Promise(setImmediate)

/** Starts documents with a key. Each one runs until the test ends it. */
function createRig() {
  const again: string[] = []
  const keys = new Keys((id) => void again.push(id))
  const running: string[] = []
  const start = (key: string, id: string) => {
    const latch = createLatch()
    const ended = keys.run(key, async () => {
      running.push(id)
      await latch.opened
      running.splice(running.indexOf(id), 1)
    })
    return async () => {
      latch.open()
      await ended
    }
  }
  return { keys, again, running, start }
}

test('documents with one key run one at a time, in order of arrival, and other keys run in parallel', async () => {
  const { running, start } = createRig()
  const [a, b] = [start('ann', 'a'), start('ann', 'b')]
  const c = start('bob', 'c')
  await settled()
  expect(running).toEqual(['a', 'c'])
  await a()
  await settled()
  expect(running).toEqual(['c', 'b'])
  await Promise.all([b(), c()])
  start('ann', 'd')
  await settled()
  expect(running).toEqual(['d'])
})

test('few documents of a key wait in memory, and the ids of the others are read again later', async () => {
  const { keys, again, start } = createRig()
  const first = start('ann', '0')
  const waiting = [1, 2, 3, 4].map((n) => (expect(keys.isFull('ann', `${n}`)).toBe(false), start('ann', `${n}`)))
  for (const id of ['5', '6', '7', '6']) expect(keys.isFull('ann', id)).toBe(true)
  expect(keys.isFull('bob', '8')).toBe(false)
  await first()
  expect(again).toEqual(['5'])
  for (const end of waiting) await end()
  expect(again).toEqual(['5', '6', '7'])
})

test('a failure does not block the next document with the same key', async () => {
  const { keys, running, start } = createRig()
  const failing = keys.run('ann', () => Promise.reject(new Error('no')))
  start('ann', 'b')
  await expect(failing).rejects.toThrow('no')
  await settled()
  expect(running).toEqual(['b'])
})

const doc = { _id: 'o', _rev: '1-1', customer: 'ann' }
const keyBy = (key: unknown) => keyOf({ options: { ...handlerDefaults, key: key as () => string } }, doc)

test('a key is a text, a number or absent', () => {
  expect(keyBy((order: typeof doc) => order.customer)).toBe('ann')
  expect([0, 7].map((n) => keyBy(() => n))).toEqual(['0', '7'])
  expect([undefined, null].map((none) => keyBy(() => none))).toEqual([undefined, undefined])
  expect(keyOf({ options: handlerDefaults }, doc)).toBeUndefined()
})

test.each([
  ['object', () => ({})],
  ['object', () => Promise.resolve('ann')],
  ['boolean', () => true],
])('a key of another type is refused: %s', (type, key) => {
  expect(() => keyBy(key)).toThrow(`the handler's key of this document: expected a string, got ${type}`)
})

test('a key function that throws is refused', () => {
  const key = () => {
    throw new TypeError('of undefined')
  }
  expect(() => keyBy(key)).toThrow('the handler’s key throws on this document: of undefined'.replace('’', "'"))
})
