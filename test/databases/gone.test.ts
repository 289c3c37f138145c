/** Databases that a look at all does not find: deleted, or only not listed for a moment. */
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { everything, type Partitioning } from '../../sidecar/workers/partitioning.ts'
import { createLatch } from '../docstate/rig.ts'
import { eventually } from '../support/eventually.ts'
import { startFaultyProxy, type Fault } from '../support/faulty-proxy.ts'
import { createPrefix, make, order, startVisits, type RigOptions } from './rig.ts'

/** Only events bring a visit, and looks that are asked for. */
const HARDLY = [600_000, 600_000] as const

/** The list of all databases without this one. */
const hiding =
  (name: string): Fault =>
  async (exchange) => {
    const answer = await exchange.forward()
    const names = JSON.parse(await text(answer.body)) as string[]
    const body = Readable.from([Buffer.from(JSON.stringify(names.filter((other) => other !== name)))])
    await exchange.send({ ...answer, body })
    exchange.end()
  }

/** Two databases at rest, of which the first has had an order. */
async function startAtRest(register?: RigOptions['register']) {
  const prefix = createPrefix()
  const proxy = await startFaultyProxy()
  let lookSoon = () => {}
  const partitioning: Partitioning = {
    ...{ of: () => everything, whole: () => everything, known: Promise.resolve() },
    onChange: (listener) => void (lookSoon = listener),
  }
  const rig = startVisits(prefix, { by: proxy.url, partitioning, lookAgainMs: HARDLY, ...(register && { register }) })
  const names = ['a', 'b'].map((letter) => `${prefix}-db-${letter}`)
  const [a] = await make(rig, ...names)
  const looks = () => proxy.requests.filter(({ path }) => path === '/_dbs_info').length
  /** At all databases, `a` perhaps left out: it has been believed or not when the others are asked how far they are. */
  async function look({ without }: { without?: string } = {}): Promise<void> {
    if (without !== undefined) proxy.next(hiding(without), ({ path }) => path === '/_all_dbs')
    const before = looks()
    lookSoon()
    await eventually(() => expect(looks()).toBeGreaterThan(before))
  }
  const untilRest = () => eventually(() => expect(rig.visited()).toMatchObject({ open: 0, waiting: 0 }))
  const asked = () => proxy.requests.filter(({ path }) => path.startsWith(`/${a!.name}/`))

  for (const name of names) rig.tell(name, 'created')
  await a!.put(order('first'))
  rig.tell(a!.name)
  await eventually(() => expect(rig.handled).toEqual(['first']))
  for (let looked = 0; looked < 2; looked++) await look() // the first look may have begun before there was any
  return { ...rig, a: a!, look, untilRest, asked }
}

test('a database that one look has missed keeps its checkpoint: nothing is asked of it when it is back', async () => {
  const { a, look, untilRest, asked, visited, handled, tell } = await startAtRest()
  await untilRest()
  for (const without of [[], [a.name], [], [a.name], []]) {
    const before = asked().length
    await look({ ...(without[0] && { without: without[0] }) })
    expect(visited().databases).toBe(2)
    await untilRest()
    expect(asked().slice(before)).toEqual([])
  }
  await a.put(order('second'))
  tell(a.name)
  await eventually(() => expect(handled).toEqual(['first', 'second']))
})

test('one that two looks have missed is forgotten, and read like a new one when it is back', async () => {
  const { a, look, untilRest, asked, visited, handled } = await startAtRest()
  await untilRest()
  await look({ without: a.name })
  expect(visited().databases).toBe(2)
  await look({ without: a.name })
  expect(visited().databases).toBe(1)
  await a.put(order('second'))
  const before = asked().length
  await look()
  await eventually(() => expect(handled).toEqual(['first', 'second']))
  expect(visited().databases).toBe(2)
  expect(asked()[before]!.path).toContain('/_local/')
})

test('one that is back before the handlers of its last visit have ended is visited again at once', async () => {
  const go = createLatch()
  const { a, look, visited, handled, tell } = await startAtRest((control, handled) =>
    control.safe('order', 'paid', async (doc) => {
      handled.push(doc._id)
      await go.opened
      return { ...doc, state: 'invoiced' }
    }),
  )
  for (const without of [a.name, a.name]) await look({ without })
  await a.put(order('second'))
  await look()
  tell(a.name)
  expect(handled).toEqual(['first'])
  go.open()
  await eventually(() => expect(handled).toEqual(['first', 'second']))
  expect(visited().databases).toBe(2)
})
