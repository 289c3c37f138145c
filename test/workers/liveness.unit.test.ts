import { expect, test } from 'vitest'
import { beatId } from '../../sidecar/workers/worker-documents.ts'
import { Liveness } from '../../sidecar/workers/liveness.ts'
import { createManualClock } from '../support/manual-clock.ts'

const ID = 'worker:mill:a'

function watch() {
  const clock = createManualClock()
  const signs = new Liveness(() => clock.ticks(), 'ours')
  const look = async (afterMs: number, beat: Record<string, unknown> | undefined, rev = '1-a') => {
    await clock.advance(afterMs)
    const id = beatId(ID)
    signs.look([{ _id: ID, _rev: rev, timeout_ms: 15_000 }], new Map(beat && [[id, { _id: id, ...beat }]]))
    return signs.isSilent(ID) ? 'silent' : signs.isAlive(ID) ? 'alive' : 'unknown'
  }
  return { signs, look }
}

test('a worker without a heartbeat for its whole timeout is silent, and the first read proves nothing', async () => {
  const { look } = watch()
  expect(await look(0, { beat: 1 })).toBe('unknown')
  expect(await look(5000, { beat: 2 })).toBe('alive')
  for (let i = 0; i < 3; i++) expect(await look(4999, { beat: 2 })).toBe('alive')
  expect(await look(3, { beat: 2 })).toBe('silent')
  expect(await look(5000, { beat: 3 })).toBe('alive')
})

test('a new revision counts as a heartbeat, and a deleted heartbeat does not', async () => {
  const { look } = watch()
  await look(0, { beat: 1 })
  for (let i = 0; i < 2; i++) await look(5000, { beat: 1 })
  expect(await look(5000, { beat: 1 }, '2-b')).toBe('unknown')
  for (let i = 0; i < 2; i++) expect(await look(5000, undefined, '2-b')).toBe('unknown')
  expect(await look(5000, undefined, '2-b')).toBe('silent')
})

test('a heartbeat of this process proves nothing about another process of the same name', async () => {
  const { look } = watch()
  await look(0, { process: 'theirs', beat: 1 })
  for (let i = 0; i < 2; i++) expect(await look(5000, { process: 'ours', beat: i })).toBe('unknown')
  expect(await look(5000, { process: 'ours', beat: 2 })).toBe('silent')
  expect(await look(5000, { process: 'theirs', beat: 2 })).toBe('alive')
})

test.each([8000, 20_000, 3_600_000])(
  'reads %d ms apart find a dead worker at the third read, not before',
  async (gapMs) => {
    const { look } = watch()
    await look(0, { beat: 1 })
    expect(await look(gapMs, { beat: 1 })).toBe('unknown')
    expect(await look(gapMs, { beat: 1 })).toBe('unknown')
    expect(await look(gapMs, { beat: 1 })).toBe('silent')
  },
)

test('a failed read restarts all timeouts, and a removed worker is forgotten', async () => {
  const { signs, look } = watch()
  await look(0, { beat: 1 })
  for (let i = 0; i < 2; i++) await look(5000, { beat: 1 })
  signs.forget()
  for (let i = 0; i < 3; i++) expect(await look(5000, { beat: 1 })).toBe('unknown')
  expect(await look(5000, { beat: 1 })).toBe('silent')
  signs.look([], new Map())
  expect(signs.isSilent(ID)).toBe(false)
})

test('a worker that was alive stays alive after a failed read', async () => {
  const { signs, look } = watch()
  await look(0, { beat: 1 })
  expect(await look(5000, { beat: 2 })).toBe('alive')
  signs.forget()
  expect(signs.isAlive(ID)).toBe(true)
  for (let i = 0; i < 3; i++) expect(await look(5000, { beat: 2 })).toBe('alive')
  expect(await look(5000, { beat: 2 })).toBe('silent')
})
