import { expect, test } from 'vitest'
import { SharedTurns, Turns, type Turn } from '../../sidecar/docstate/turns.ts'

const settled = () => new Promise(setImmediate)

/** Creates waiting documents. The test decides when each one is claimed, runs and ends. */
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
  /** Answers all claims. Their documents run as far as the concurrency allows. */
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

test('few waiting documents are claimed one at a time', async () => {
  const { wait, claiming, answer, running } = createRig({})
  wait(50)
  await settled()
  expect(claiming.size).toBe(1)
  await answer()
  expect([claiming.size, running.size]).toEqual([1, 1])
})

test('many waiting documents are claimed in small groups, up to the concurrency', async () => {
  const { wait, claiming, running, answer, end } = createRig({ concurrency: 25 })
  wait(640)
  await settled()
  expect(claiming.size, 'the first document is claimed alone').toBe(1)
  await answer()
  await end(100)
  expect(claiming.size).toBe(Math.ceil((640 - 25) / 32))
  await answer()
  expect(claiming.size + running.size).toBe(25)
})

test('documents of fast handlers are claimed in groups, and concurrency limits the running handlers', async () => {
  const { wait, claiming, running, answer, end } = createRig({ unread: 9600 })
  wait(2000)
  await settled()
  await answer()
  await end(0)
  expect(claiming.size).toBe(300)
  await answer()
  expect(running.size).toBe(4)
})

test('documents of slow handlers are claimed only up to the concurrency', async () => {
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

test('safe handlers run up to their concurrency, even if they are fast', async () => {
  const { wait, running, end } = createRig({ hasClaims: false })
  wait(2000)
  expect(running.size).toBe(4)
  await end(0)
  expect(running.size).toBe(4)
})

test('a closed database releases its turns, and its later documents take no turn', () => {
  const shared = new SharedTurns({ concurrency: () => 1, hasClaims: false })
  const [called, running]: [string[], Turn[]] = [[], []]
  const start = (name: string) => {
    const turns = new Turns({ shared, unread: () => 0, ticks: () => 0 })
    const wait = (what: string) =>
      turns.take((turn) => {
        called.push(name + what)
        running.push(turn)
      })
    return { turns, wait }
  }
  const [one, other] = [start('one'), start('other')]
  for (const what of ['1', '2', '3']) one.wait(what)
  other.wait('1')
  expect(called).toEqual(['one1'])
  one.turns.close()
  one.wait('4')
  expect(called).toEqual(['one1', 'one2', 'one3', 'one4'])
  expect(shared.waiting).toBe(1)
  for (const turn of running.splice(1)) turn.leave() // the turns of the closed database do not count
  expect([called.length, shared.running.taken, shared.claimed.taken]).toEqual([4, 0, 1])
  running[0]!.leave()
  expect(called.at(-1)).toBe('other1')
})

test.each([true, false])(
  'a database with many waiting documents does not delay others (claims: %s)',
  async (hasClaims) => {
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
  },
)
