/** Databases that a listing does not contain: deleted, or missing from the list for a moment. */
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { everything, type Partitioning } from '../../sidecar/workers/partitioning.ts'
import { createLatch } from '../docstate/rig.ts'
import { eventually } from '../support/eventually.ts'
import { startFaultyProxy, type Fault } from '../support/faulty-proxy.ts'
import { createPrefix, make, order, startVisits, type RigOptions } from './rig.ts'

/** Only events and requested listings start a visit. */
const HARDLY = [600_000, 600_000] as const

/** Removes this name from the list of all databases. */
const hiding =
  (name: string): Fault =>
  async (exchange) => {
    const answer = await exchange.forward()
    const names = JSON.parse(await text(answer.body)) as string[]
    const body = Readable.from([Buffer.from(JSON.stringify(names.filter((other) => other !== name)))])
    await exchange.send({ ...answer, body })
    exchange.end()
  }

/** Starts with two idle databases. The first has one handled order. */
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
  /** Lists all databases, optionally without one. The list is applied once `_dbs_info` is requested. */
  async function look({ without }: { without?: string } = {}): Promise<void> {
    if (without !== undefined) proxy.next(hiding(without), ({ path }) => path === '/_all_dbs')
    const before = looks()
    lookSoon()
    await eventually(() => expect(looks()).toBeGreaterThan(before))
  }
  const untilRest = () => eventually(() => expect(rig.visited()).toMatchObject({ open: 0, waiting: 0 }))
  const requested = () => proxy.requests.filter(({ path }) => path.startsWith(`/${a!.name}/`))

  for (const name of names) rig.report(name, 'created')
  await a!.put(order('first'))
  rig.report(a!.name)
  await eventually(() => expect(rig.handled).toEqual(['first']))
  // The first listing may have begun before the databases existed.
  for (let looked = 0; looked < 2; looked++) await look()
  return { ...rig, a: a!, look, untilRest, requested }
}

test('a database that one listing lacks keeps its checkpoint and gets no requests when it returns', async () => {
  const { a, look, untilRest, requested, visited, handled, report } = await startAtRest()
  await untilRest()
  for (const without of [[], [a.name], [], [a.name], []]) {
    const before = requested().length
    await look({ ...(without[0] && { without: without[0] }) })
    expect(visited().databases).toBe(2)
    await untilRest()
    expect(requested().slice(before)).toEqual([])
  }
  await a.put(order('second'))
  report(a.name)
  await eventually(() => expect(handled).toEqual(['first', 'second']))
})

test('a database that two listings lack is forgotten, and is read as new when it returns', async () => {
  const { a, look, untilRest, requested, visited, handled } = await startAtRest()
  await untilRest()
  await look({ without: a.name })
  expect(visited().databases).toBe(2)
  await look({ without: a.name })
  expect(visited().databases).toBe(1)
  await a.put(order('second'))
  const before = requested().length
  await look()
  await eventually(() => expect(handled).toEqual(['first', 'second']))
  expect(visited().databases).toBe(2)
  expect(requested()[before]!.path).toContain('/_local/')
})

test('a database that returns before the handlers of its last visit end is visited again at once', async () => {
  const go = createLatch()
  const { a, look, visited, handled, report } = await startAtRest((control, handled) =>
    control.safe('order', 'paid', async (doc) => {
      handled.push(doc._id)
      await go.opened
      return { ...doc, state: 'invoiced' }
    }),
  )
  for (const without of [a.name, a.name]) await look({ without })
  await a.put(order('second'))
  await look()
  report(a.name)
  expect(handled).toEqual(['first'])
  go.open()
  await eventually(() => expect(handled).toEqual(['first', 'second']))
  expect(visited().databases).toBe(2)
})
