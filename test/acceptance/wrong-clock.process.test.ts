/** On a machine whose clock is an hour off, the times in documents follow CouchDB's clock. */
import { writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { shiftedClock } from '../chaos/handlers.ts'
import { eventually } from '../support/eventually.ts'
import { startProcessWith, writeModule } from './own-handlers.ts'

const HOUR_MS = 3_600_000
const soon = (ms: number) => new Date(Date.now() + ms).toISOString()

test.each([
  ['ahead', HOUR_MS],
  ['behind', -HOUR_MS],
])('a sidecar whose clock is an hour %s retries at the right time, and logs the difference', async (_, ms) => {
  const module = await writeModule(`
    import { defineHandlers } from 'couchdb-sidecar'
    export default defineHandlers((control) => {
      control.safe('order', 'paid', async (order) => {
        if (!order.docstate?.attempts) throw new Error('not yet')
        return { ...order, state: 'invoiced' }
      })
    })`)
  const shift = module.replace(/[^/]+$/, 'shift.mjs')
  await writeFile(shift, shiftedClock(ms))
  const { orders, sidecar } = await startProcessWith(module, { NODE_OPTIONS: `--import ${shift}` })
  const waiting = { state: 'paid', attempts: 1, retry_at: soon(HOUR_MS / 2) }
  await orders.put({ _id: 'later', type: 'order', state: 'paid', docstate: waiting })
  await orders.put({ _id: 'now', type: 'order', state: 'paid' })
  await eventually(async () => expect(await orders.get('now')).toMatchObject({ state: 'invoiced' }))
  expect(await orders.get('later')).toMatchObject({ state: 'paid', docstate: waiting })
  const received = sidecar.log.find(({ msg }) => msg.startsWith('the clock of this machine'))
  expect(received).toMatchObject({ level: 40, differenceMs: expect.closeTo(ms, -4) as number })
})
