/** A server or proxy sends arbitrary answers to a command, which reports them in a sentence or retries. */
import { expect, test } from 'vitest'
import { freshDb } from '../../support/couchdb.ts'
import { installDocstate } from '../../docstate/install.ts'
import { answerWith, cutAfterBytes, startFaultyProxy, type SeenRequest } from '../../support/faulty-proxy.ts'
import { amount } from '../../support/thorough.ts'
import { runCommand } from '../start.ts'

const bodies = [
  ...['null', 'true', '0', '"text"', '[]', '{}', '[null]', '', '{"ro', '<html>busy</html>', '{"rows":null}'],
  ...['{"rows":[null]}', '{"rows":[{}]}', '{"userCtx":null}', '{"update_seq":null,"instance_start_time":0}'],
]
const faults = [
  ...[200, 404, 500].flatMap((status) =>
    bodies.map((body) => [`${status} ${body}`, answerWith(status, body)] as const),
  ),
  ['an answer that is cut', cutAfterBytes(20)] as const,
]
/** Coprime to the number of answers, so that consecutive answers differ. */
const STRIDE = 7

/** A request without the parts that change from run to run. */
const endpointOf = ({ method, path }: SeenRequest) => `${method} ${path.replace(/[0-9a-f]{16,}/g, '…')}`

test.each(['status', 'explain', 'retry', 'deploy'])(
  '%s ends with a sentence when any of its requests gets a bad answer',
  { timeout: 1_800_000 }, // hundreds of processes, or of containers
  async (command) => {
    const proxy = await startFaultyProxy()
    const control = await freshDb('control')
    const db = await freshDb('orders')
    await installDocstate(db, {})
    const parked = { at: '2026-01-01T00:00:00.000Z', reason: 'lost' }
    const park = async () => {
      const before = await db.find('o1')
      await db.put({ ...before, _id: 'o1', type: 'order', state: 'paid', docstate: { state: 'paid', parked } })
    }
    const args = { status: [], explain: [db.name, 'o1'], retry: [db.name, 'o1'], deploy: [] }[command]!
    const settings = { COUCHDB_URL: proxy.url, SIDECAR_CONTROL_DB: control.name, SIDECAR_DATABASES: db.name }
    const run = async () => {
      await park()
      return runCommand([command, ...args], settings)
    }
    await run()
    const endpoints = [...new Set(proxy.requests.map(endpointOf))]
    expect(endpoints.length).toBeGreaterThan(1)
    const all = endpoints.flatMap((endpoint) => faults.map((fault) => [endpoint, ...fault] as const))
    const count = Math.min(all.length, amount(12, 1000))
    for (let i = 0; i < count; i++) {
      const [endpoint, said, fault] = all[(i * STRIDE) % all.length]!
      proxy.next(fault, (request) => endpointOf(request) === endpoint)
      const { code, stderr, stdout } = await run()
      const what = `${endpoint} answered with ${said}: ${stderr}`
      expect([0, 1], what).toContain(code)
      expect(stderr, what).not.toMatch(/^ +at /m)
      expect(stderr, what).not.toMatch(/TypeError|undefined|\[object/)
      if (code === 0) expect(stdout, what).not.toBe('')
      else expect(stderr, what).toMatch(/^couchdb-sidecar: \S/)
    }
  },
)
