import { expect, test } from 'vitest'
import { SharedTurns, Turns, type Turn } from '../../sidecar/docstate/turns.ts'

const settled = () => new Promise(setImmediate)

/** Documents on their way; each is claimed, then runs, when it is told to. */
function createRig({ concurrency = 4, hasClaims = true, unread = 0 }) {
  const clock = { now: 0 }
  const shared = new SharedTurns({ concurrency: () => concurrency, hasClaims })
  const turns = new Turns({ shared, unread: () => unread, ticks: () => clock.now })
  const [claiming, running] = [new Set<Turn>(), new Set<Turn>()]
  const wait = (count: number) => {
    for (let i = 0; i < count; i++) {
      turns.take((turn) => {
        if (hasClaims) void turn.mayClaim().then(() => claiming.add(turn))
        else begin(turn)
      })
    }
  }
  const begin = (turn: Turn) => {
    turn.begins()
    turn.letOthersBegin()
    running.add(turn)
  }
  /** Claims are answered: those of them run that may. */
  const answer = async () => {
    for (const turn of [...claiming]) {
      claiming.delete(turn)
      void turn.mayBegin().then(() => begin(turn))
    }
    await settled()
  }
  const end = async (afterMs: number) => {
    clock.now += afterMs
    for (const turn of [...running]) {
      running.delete(turn)
      turn.leave()
    }
    await settled()
  }
  return { wait, answer, end, claiming, running }
}

test('where few wait, each is claimed by itself', async () => {
  const { wait, claiming, answer, running } = createRig({})
  wait(50)
  await settled()
  expect(claiming.size).toBe(1)
  await answer()
  expect([claiming.size, running.size]).toEqual([1, 1])
})

test('of many that wait a small part is claimed together, and no more than run at once', async () => {
  const { wait, claiming, running, answer, end } = createRig({ concurrency: 25 })
  wait(640)
  await settled()
  expect(claiming.size, 'the first came when none waited').toBe(1)
  await answer()
  await end(100)
  expect(claiming.size).toBe(Math.ceil((640 - 25) / 32))
  await answer()
  expect(claiming.size + running.size).toBe(25)
})

test('handlers that end at once are claimed by the group, of all that is to be read; never do more run at once', async () => {
  const { wait, claiming, running, answer, end } = createRig({ unread: 9600 })
  wait(2000)
  await settled()
  await answer()
  await end(0)
  expect(claiming.size).toBe(300)
  await answer()
  expect(running.size).toBe(4)
})

test('handlers that take their time are claimed only as they may run', async () => {
  const { wait, claiming, running, answer, end } = createRig({})
  wait(2000)
  await settled()
  for (let round = 0; round < 5; round++) {
    await answer()
    await end(50)
    expect(claiming.size + running.size).toBeLessThanOrEqual(4)
  }
  expect(claiming.size).toBe(4)
})

test('safe handlers run as many at once as they may, however short they are', async () => {
  const { wait, running, end } = createRig({ hasClaims: false })
  wait(2000)
  expect(running.size).toBe(4)
  await end(0)
  expect(running.size).toBe(4)
})

test.each([true, false])('a database in which much waits holds up no other (claims: %s)', async (hasClaims) => {
  const shared = new SharedTurns({ concurrency: () => 2, hasClaims })
  const order: string[] = []
  const running: Turn[] = []
  const start = (name: string, count: number) => {
    const turns = new Turns({ shared, unread: () => 0, ticks: () => 0 })
    for (let n = 0; n < count; n++) {
      turns.take((turn) => {
        order.push(`${name}${n}`)
        running.push(turn)
      })
    }
  }
  start('busy', 50)
  start('quiet', 1)
  start('calm', 2)
  while (running.length > 0) running.shift()!.leave()
  expect(order).toHaveLength(53)
  expect(order.slice(0, 6)).toEqual(['busy0', 'busy1', 'busy2', 'quiet0', 'calm0', 'busy3'])
  expect(order.filter((one) => one.startsWith('busy'))).toEqual(Array.from({ length: 50 }, (_, n) => `busy${n}`))
})
