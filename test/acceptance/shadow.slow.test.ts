/** A shadow handler on three workers, one of which is killed: it tries each document and writes nothing. */
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { startThree, writeNoting } from './own-handlers.ts'

const HANDLERS = `
  import { setTimeout as sleep } from 'node:timers/promises'
  import { defineHandlers } from 'couchdb-sidecar'
  export default defineHandlers((control) => {
    control.unsafe('order', 'paid', async (order, ctx) => {
      await sleep(20)
      await ctx.put({ _id: 'receipt-' + order._id, type: 'receipt' })
      note(order._id, process.env.SIDECAR_NAME)
      return { ...order, state: 'invoiced' }
    }, { shadow: true })
  })`

test('a shadow handler writes nothing, and one worker tries each new document', async () => {
  const { module, noted } = await writeNoting(HANDLERS)
  const { orders, workers } = await startThree(module)
  const [, second, third] = workers
  const bring = async (count: number, prefix: string) => {
    const ids = Array.from({ length: count }, (_, n) => `${prefix}${n}`)
    await orders.bulk(ids.map((_id) => JSON.stringify({ _id, type: 'order', state: 'paid' })))
    return ids
  }

  const before = await bring(90, 'before')
  await eventually(async () => expect(new Set((await noted()).map(([id]) => id)).size).toBe(90))
  await second!.kill()
  let probes = 0
  await eventually(async () => {
    const some = await bring(20, `probe-${++probes}-`)
    await new Promise((resolve) => setTimeout(resolve, 500))
    const ids = (await noted()).map(([id]) => id)
    expect(
      some.filter((id) => !ids.includes(id)),
      'the other workers have taken over its partition',
    ).toEqual([])
  })
  const { after, by } = await whole(bring, noted)
  expect(new Set(by).size).toBe(2)
  await third!.stop()
  const docs = await orders.getMany([...before, ...after])
  expect(docs.map(({ _rev, state }) => `${String(state)} ${parseInt(_rev)}`)).toEqual(docs.map(() => 'paid 1'))
  expect(await orders.withPrefix('receipt-')).toEqual([])
})

/** Puts sixty documents until all of one batch are tried: some stay untried while the partition changes. */
const whole = (
  bring: (count: number, prefix: string) => Promise<string[]>,
  noted: () => Promise<readonly (readonly string[])[]>,
) => {
  let batch = 0
  return eventually(async () => {
    const after = await bring(60, `after-${++batch}-`)
    const of = async () => (await noted()).filter(([id]) => after.includes(id!))
    await eventually(async () => expect(await of()).toHaveLength(60), { within: 10_000 })
    return { after, by: (await of()).map(([, worker]) => worker) }
  })
}
