import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import type { Machines } from '../../ddocs/machine.ts'
import { systemClock } from '../../sidecar/core/clock.ts'
import { createControl } from '../../sidecar/docstate/control.ts'
import type { Engine } from '../../sidecar/docstate/engine.ts'
import { healthOf } from '../../sidecar/health.ts'
import { serveDatabases } from '../../sidecar/databases/serve.ts'
import { createEvents } from '../../sidecar/events/channels.ts'
import { createTallies } from '../../sidecar/tallies.ts'
import { createRegistry } from '../../sidecar/workers/registry.ts'
import { everything } from '../../sidecar/workers/sharing.ts'
import { createTestCouch, deleteDb, uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'

test('databases that a glob matches come and go', async () => {
  const couch = createTestCouch()
  const prefix = uniqueName('glob')
  const [controlDb, first, second] = [`${prefix}-control`, `${prefix}-db-a`, `${prefix}-db-b`]
  const table = createControl<Machines>({})
  const handled: string[] = []
  table.safe('order', 'paid', (doc) => {
    handled.push(doc._id)
    return Promise.resolve({ ...doc, state: 'invoiced' })
  })
  const engines = new Map<string, Engine>()
  const tallies = createTallies([controlDb, `${prefix}-db-*`])
  const log = pino({ level: 'silent' })
  const events = createEvents({ log })
  const workers = createRegistry({
    database: couch.db(controlDb),
    events,
    clock: systemClock,
    random: Math.random,
    log,
  })
  const stopping = new AbortController()
  await couch.db(first).create()
  const serving = serveDatabases(
    {
      ...{ couch, engines, controlDb, databases: [`${prefix}-db-*`], clock: systemClock, random: Math.random },
      tables: { control: createControl({}), docstate: table },
      mailer: { forEntry: ({ done }) => ({ done, send: () => Promise.reject(new Error('no mail in this test')) }) },
      worker: 'globber',
      workers,
      events,
      sharing: { of: () => everything, known: Promise.resolve() },
      countsOf: tallies.of,
      log,
      lookAgainMs: 300,
    },
    stopping.signal,
  )
  onTestFinished(async () => {
    stopping.abort(new Error('the test is over'))
    await serving
    for (const name of [controlDb, first, second]) await deleteDb(name)
  })
  const served = () => [...engines.keys()].sort()
  const put = (name: string, _id: string) => couch.db(name).put({ _id, type: 'order', state: 'paid' })

  await eventually(() => expect(served()).toEqual([controlDb, first]))
  await couch.db(second).create()
  await put(second, 'b1')
  await eventually(() => expect(handled).toEqual(['b1']))

  const { runs } = tallies.all.get(`${prefix}-db-*`)!.of({ type: 'order', state: 'paid' })
  await eventually(() => expect(runs.next).toBe(1))
  await deleteDb(first)
  await eventually(() => expect(served()).toEqual([controlDb, second]))
  await eventually(() => expect(healthOf(engines)).toEqual({ ok: true, reasons: [] }))

  await couch.db(first).create()
  await put(first, 'a1')
  await eventually(() => expect(handled).toEqual(['b1', 'a1']))
  await eventually(() => expect(runs.next, 'nothing that was counted is lost with an engine').toBe(2))

  await deleteDb(controlDb) // it is named, not matched: waited for
  await new Promise((resolve) => setTimeout(resolve, 1000)) // several looks
  await put(second, 'b2')
  await eventually(() => expect(handled).toEqual(['b1', 'a1', 'b2']))
  expect(served()).toContain(controlDb)
})
