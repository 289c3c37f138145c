import { expect, test } from 'vitest'
import { ByteGate } from '../../sidecar/core/byte-gate.ts'

const open = new AbortController().signal

test('lets in what fits and keeps the rest waiting in order', async () => {
  const gate = new ByteGate(100)
  const entered: string[] = []
  await gate.enter(60, open)
  const second = gate.enter(60, open).then(() => entered.push('second'))
  const third = gate.enter(10, open).then(() => entered.push('third'))
  await new Promise(setImmediate)
  expect(entered, 'a small one does not overtake').toEqual([])
  gate.leave(60)
  await Promise.all([second, third])
  expect(entered).toEqual(['second', 'third'])
  expect(gate.inFlight).toBe(70)
})

test('lets in an item larger than the whole budget, alone', async () => {
  const gate = new ByteGate(100)
  await gate.enter(500, open)
  expect(gate.tryEnter(1)).toBe(false)
  gate.leave(500)
  expect(gate.tryEnter(1)).toBe(true)
})

test('an aborted wait frees its place for the next', async () => {
  const gate = new ByteGate(100)
  await gate.enter(100, open)
  const leaving = new AbortController()
  const large = gate.enter(90, leaving.signal)
  const small = gate.enter(20, open)
  leaving.abort(new Error('gone'))
  await expect(large).rejects.toThrow('gone')
  gate.leave(100)
  await small
  expect(gate.inFlight).toBe(20)
})

test('once full, it is low again when half has left', async () => {
  const gate = new ByteGate(100)
  await gate.enter(100, open)
  await gate.whenLow(open) // nobody has had to wait yet
  const waiting = gate.enter(10, open)
  let low = false
  const becameLow = gate.whenLow(open).then(() => (low = true))
  const leaving = new AbortController()
  const abandoned = gate.whenLow(leaving.signal)
  leaving.abort(new Error('gone'))
  await expect(abandoned).rejects.toThrow('gone')
  gate.leave(50)
  await waiting
  expect(low, '60 of 100 in flight').toBe(false)
  gate.leave(10)
  await becameLow
})
