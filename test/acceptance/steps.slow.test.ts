/** Handler steps on three workers, one of which is killed between a step and the end of its handler. */
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { startThree, writeNoting } from './own-handlers.ts'

const HANDLERS = `
  import { setTimeout as sleep } from 'node:timers/promises'
  import { defineHandlers } from 'couchdb-sidecar'
  export default defineHandlers((control) => {
    control.unsafe('order', 'paid', async (order, ctx) => {
      const charge = await ctx.once('charge', (key) => {
        note('charge', order._id, process.env.SIDECAR_NAME)
        return { id: key }
      })
      note('charged', order._id, process.env.SIDECAR_NAME)
      await sleep(3000)
      await ctx.once('ship', () => note('ship', order._id, process.env.SIDECAR_NAME))
      return { ...order, state: 'shipped', charge: charge.id }
    }, { onLost: 'retry' })
  })`

test('the worker that takes over does not repeat a completed step', async () => {
  const { module, noted } = await writeNoting(HANDLERS)
  const { orders, named } = await startThree(module)
  const ids = Array.from({ length: 12 }, (_, n) => `o${n}`)
  await orders.bulk(ids.map((_id) => JSON.stringify({ _id, type: 'order', state: 'paid' })))
  const of = async (what: string) => (await noted()).filter(([one]) => one === what)
  const worker = await eventually(async () => {
    const charged = await of('charged')
    expect(charged.length).toBeGreaterThan(0)
    return charged[0]![2]!
  })
  await named(worker).kill()
  const left = async () => (await orders.getMany(ids)).filter(({ state }) => state !== 'shipped')
  await eventually(async () => expect(await left()).toEqual([]))
  const charges = (await of('charge')).map(([, id]) => id)
  const charged = (await of('charged')).map(([, id]) => id)
  expect(charged.length, 'a handler ran again').toBeGreaterThan(ids.length)
  const again = charged.filter((id, at) => charged.indexOf(id) < at)
  for (const id of again)
    expect(
      charges.filter((one) => one === id),
      id,
    ).toHaveLength(1)
  for (const { _id, charge } of await orders.getMany(ids)) expect(charge, _id).toMatch(/^[\w-]{32}$/)
})
