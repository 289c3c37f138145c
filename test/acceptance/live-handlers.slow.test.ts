/** A paused handler stays paused in all workers, also after a restart; on resume each document has its run. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { startThree, writeNoting } from './own-handlers.ts'
import { startProcess } from './process.ts'

const ID = 'config:handlers'

test('a handler stays paused through a restart of a worker, and then runs each document once', async () => {
  const { module, noted } = await writeNoting(`
    export default { machines: {}, register(control) {
      control.unsafe('order', 'new', async (order) => {
        note('begins', order._id, process.env.SIDECAR_NAME, Date.now())
        await new Promise((resolve) => setTimeout(resolve, 100))
        note('ends', order._id, process.env.SIDECAR_NAME, Date.now())
        return { ...order, state: 'done' }
      }, { onLost: 'retry' })
    } }`)
  const { control, orders, settings, workers } = await startThree(module)
  const put = (from: number, to: number) =>
    orders.bulk(
      Array.from({ length: to - from }, (_, n) => JSON.stringify({ _id: `o${from + n}`, type: 'order', state: 'new' })),
    )
  const set = async (handler: object) => {
    const before = await control.admin.find(ID)
    await control.admin.put({ ...before, _id: ID, handlers: { 'order/new': handler } })
  }
  const done = async () => new Set((await noted()).flatMap(([what, id]) => (what === 'ends' ? [id] : []))).size

  await put(0, 6)
  await eventually(async () => expect(await done()).toBe(6))
  await set({ paused: true })
  await sleep(1000) // workers apply it within a second
  await put(6, 36)
  await workers[1]!.kill()
  await sleep(1000)
  await startProcess({ ...settings, SIDECAR_NAME: 'b' })
  await sleep(2000)
  expect(await done(), 'no run begins, also in the restarted worker').toBe(6)

  await set({ concurrency: 1 })
  await eventually(async () => expect(await done()).toBe(36))
  const begins = (await noted()).filter(([what]) => what === 'begins')
  expect(begins, 'each document has one run').toHaveLength(36)
  const runs = (await noted()).filter(([, id]) => Number(id!.slice(1)) >= 6)
  for (const worker of new Set(runs.map(([, , worker]) => worker))) {
    const ofOne = runs.filter((run) => run[2] === worker).map(([what]) => what)
    expect(ofOne, 'each worker runs one at a time').toEqual(ofOne.map((_, at) => (at % 2 === 0 ? 'begins' : 'ends')))
  }
})
