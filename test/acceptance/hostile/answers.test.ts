/** A server or proxy that sends arbitrary answers: each one fails only its request. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { StoredDoc } from '../../../sidecar/couch/documents.ts'
import { freshDb } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { answerWith, startFaultyProxy, type Fault, type SeenRequest } from '../../support/faulty-proxy.ts'
import { amount } from '../../support/thorough.ts'
import { writeModule } from '../own-handlers.ts'
import { linksTo, newDevice, startWatching, typeCode, untilState } from '../registration.ts'

const bodies = [
  ...['null', 'true', '0', '-1e400', '"text"', '[]', '{}', '[null]', '[[]]', '[{}]', '', '{"ro', '<html>busy</html>'],
  ...['{"rows":null}', '{"rows":[null]}', '{"rows":[{}]}', '{"rows":{"length":3}}'],
  ...['{"results":null,"last_seq":null}', '{"results":[null],"last_seq":"1"}', '{"results":[{"id":"a"}]}'],
  ...['{"results":[{"id":"a","docs":null}]}', '{"id":1,"seq":1,"changes":[null]}'],
  ...['{"userCtx":null}', '{"userCtx":{"name":"a","roles":null}}', '{"update_seq":null,"instance_start_time":0}'],
]
const answers = [200, 500].flatMap((status) => bodies.map((body) => answerWith(status, body)))
/** Coprime to the number of answers, so that consecutive answers differ. */
const STRIDE = 7
const ROUNDS = amount(12, 600)
const within = 120_000
const timeout = within + amount(60_000, 300_000)

/** A request without the names of its database and document. */
const endpointOf = ({ method, path }: SeenRequest) =>
  `${method} ${path
    .replace(/^\/[^_/][^/]*/, '/db')
    .replace(/^(\/db|\/_users)\/[^_].*/, '$1/doc')
    .replace(/(_local|_design|_node)\/.*/, '$1/…')}`

/** Gives bad answers in turn per endpoint, rarely enough for a document to be handled within a lease. */
function createLiar() {
  const requested = new Map<string, number>()
  return (request: SeenRequest): Fault | undefined => {
    const endpoint = endpointOf(request)
    const every = /_bulk_docs|doc$/.test(endpoint) ? 6 : 2
    const count = requested.get(endpoint) ?? 0
    requested.set(endpoint, count + 1)
    return count % every === 0 ? answers[((count / every) * STRIDE) % answers.length] : undefined
  }
}

/** A parked order counts as handled: its effect happened, but no save arrived before the lease ended. */
const isOver = ({ state, docstate }: StoredDoc) =>
  state === 'sold' || (typeof docstate === 'object' && docstate !== null && 'parked' in docstate)

test('bad answers from any endpoint stop nothing, and all documents are handled', { timeout }, async () => {
  const proxy = await startFaultyProxy()
  const databases = [await freshDb('orders'), await freshDb('sales')]
  const [followed, visited] = databases.map(({ name }) => name)
  const module = await writeModule(`
    import { appendFileSync } from 'node:fs'
    export default { machines: {}, register(control) {
      control.safe('order', 'new', async (order) => ({ ...order, state: 'priced' }))
      control.unsafe('order', 'priced', async (order) => {
        appendFileSync(import.meta.dirname + '/effects', order.number + '\\n')
        return { ...order, state: 'sold' }
      })
    } }`)
  const registration = await startWatching({
    COUCHDB_URL: proxy.url,
    SIDECAR_DATABASES: `${followed},${visited}*`,
    SIDECAR_HANDLERS: module,
  })
  proxy.plan(createLiar())
  const device = newDevice()
  await registration.control.member.put(device)
  const ids = Array.from({ length: ROUNDS }, (_, i) => `o${i}`)
  for (const _id of ids) {
    for (const db of databases) await db.put({ _id, type: 'order', state: 'new', number: `${db.name} ${_id}` })
    await sleep(100)
  }
  proxy.plan(() => undefined)

  for (const db of databases) {
    const left = async () => (await db.getMany(ids)).filter((order) => !isOver(order))
    await eventually(async () => expect(await left()).toEqual([]), { within })
  }
  await untilState(registration, device._id, 'confirming', within)
  expect(await typeCode(linksTo(registration, device.owner)[0]!)).toMatchObject({ status: 200 })
  await untilState(registration, device._id, 'active')
  const effects = readFileSync(join(dirname(module), 'effects'), 'utf8')
    .split('\n')
    .slice(0, -1)
  expect(effects.length, 'no effect happens twice').toBe(new Set(effects).size)
  for (const db of databases) {
    const sold = (await db.getMany(ids)).filter(({ state }) => state === 'sold')
    expect(effects).toEqual(expect.arrayContaining(sold.map(({ number }) => number)))
  }
  expect(await registration.sidecar.stop()).toBe(0)
})
