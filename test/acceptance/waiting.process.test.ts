/** A starting sidecar logs what is missing, and waits for it. */
import { expect, onTestFinished, test } from 'vitest'
import { createTestCouch, deleteDb, uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { startFaultyProxy } from '../support/faulty-proxy.ts'
import { createControl } from './control.ts'
import { writeModule } from './own-handlers.ts'
import { startSidecar } from './start.ts'
import { settingsOf } from './registration.ts'

test('start waits for a CouchDB that is unreachable, and logs it', async () => {
  const proxy = await startFaultyProxy()
  await proxy.down()
  const [control, port] = [await createControl(), await freePort()]
  const starting = startSidecar(settingsOf(control, { COUCHDB_URL: proxy.url, SIDECAR_PORT: String(port) }))
  await eventually(async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/_up`)
    expect({ status: answer.status, body: await answer.text() }).toEqual({
      status: 503,
      body: expect.stringContaining('waiting for CouchDB') as string,
    })
  })
  await proxy.up()
  const { log } = await starting
  expect(log).toContainEqual(expect.objectContaining({ level: 40, msg: 'waiting for CouchDB', code: 'unreachable' }))
})

test('start waits for a missing database of SIDECAR_DATABASES, and logs it', async () => {
  const module = await writeModule(`
    import { defineHandlers } from 'couchdb-sidecar'
    export default defineHandlers((control) => {
      control.safe('order', 'paid', async (order) => ({ ...order, state: 'invoiced' }))
    })`)
  const [control, name] = [await createControl(), uniqueName('orders')]
  onTestFinished(() => deleteDb(name))
  const { log } = await startSidecar(settingsOf(control, { SIDECAR_DATABASES: name, SIDECAR_HANDLERS: module }))
  const said = { level: 40, msg: `database ${name} does not exist; waiting until it is created` }
  await eventually(() => expect(log).toContainEqual(expect.objectContaining(said)))
  const orders = createTestCouch().db(name)
  await orders.create()
  await orders.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(async () => expect(await orders.get('o')).toMatchObject({ state: 'invoiced' }))
})
