/** `since: 'now'` while three workers share the work and one is killed. */
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { startProcessWith, writeModule, writeNoting } from './own-handlers.ts'
import { startProcess } from './process.ts'

const HANDLERS = `
  import { setTimeout as sleep } from 'node:timers/promises'
  import { defineHandlers } from 'couchdb-sidecar'
  export default defineHandlers((control) => {
    control.safe('call', 'new', async () => undefined)
    control.unsafe('order', 'paid', async (order) => {
      note(order._id)
      await sleep(50)
      return { ...order, state: 'invoiced' }
    }, { since: 'now', onLost: 'retry', concurrency: 2 })
  })`

test('with since now, older documents are ignored and all newer ones are handled', async () => {
  const { module, noted } = await writeNoting(HANDLERS)
  const old = await writeModule(`
    import { defineHandlers } from 'couchdb-sidecar'
    export default defineHandlers((control) => control.safe('call', 'new', async () => undefined))`)
  const before = await startProcessWith(old, { SIDECAR_NAME: 'a', SIDECAR_LEASE: '8s' })
  const { orders, settings } = before
  const docs = (count: number, prefix: string) =>
    Array.from({ length: count }, (_, n) => ({ _id: `${prefix}${n}`, type: 'order', state: 'paid' }))
  const bring = (all: readonly object[]) => orders.bulk(all.map((doc) => JSON.stringify(doc)))
  await bring(docs(300, 'old'))
  await before.sidecar.kill()

  const start = (name: string) => startProcess({ ...settings, SIDECAR_NAME: name, SIDECAR_HANDLERS: module })
  const workers = await Promise.all(['a', 'b', 'c'].map(start))
  const fresh = docs(150, 'new')
  await bring(fresh)
  const taken = async () => (await noted()).map(([id]) => id!)
  await eventually(async () => expect((await taken()).length).toBeGreaterThan(20))
  await workers[1]!.kill()
  await bring(docs(50, 'later'))
  await workers[2]!.kill()
  const again = await start('d')
  const all = [...fresh, ...docs(50, 'later')].map(({ _id }) => _id)
  const left = async () => (await orders.getMany(all)).filter(({ state }) => state !== 'invoiced')
  await eventually(async () => expect(await left()).toEqual([]), { within: 120_000 })
  await again.stop()
  expect((await taken()).filter((id) => id.startsWith('old'))).toEqual([])
  const untouched = await orders.getMany(docs(300, 'old').map(({ _id }) => _id))
  expect(new Set(untouched.map(({ _rev, state }) => `${String(state)} ${_rev.split('-')[0]}`))).toEqual(
    new Set(['paid 1']),
  )
})
