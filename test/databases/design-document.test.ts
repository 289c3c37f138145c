/** Visits read the machines in the design document of each database, from any writer. */
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import { expect, test } from 'vitest'
import type { Machines } from '../../ddocs/machine.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import { systemClock } from '../../sidecar/core/clock.ts'
import { matchAgain } from '../../sidecar/databases/matching.ts'
import { ddocsFolder } from '../../sidecar/deploy/compile.ts'
import { deployDdocs } from '../../sidecar/deploy/deploy.ts'
import { DDOC_ID } from '../../sidecar/docstate/finding/pages.ts'
import { installDocstate } from '../docstate/install.ts'
import { createTestCouch, deleteDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { createPrefix, make, order, startVisits, type Rig } from './rig.ts'

const SOON = [300, 300] as const
/** After the first listing of databases, only events start a visit. */
const HARDLY = [600_000, 600_000] as const
const machines: Machines = {
  order: { paid: { mode: 'safe', create: 'client', next: { invoiced: 'sidecar' } }, invoiced: {}, error: {} },
}

/** The machines of the previous version. */
const oldMachines: Machines = { order: { paid: { create: 'client' }, error: {} } }

const atRest = (rig: Rig) =>
  eventually(() => expect(rig.visited()).toMatchObject({ databases: 1, open: 0, waiting: 0 }))

/** Creates a database with the old machines and an order without a permitted handler. */
async function makeOld(name: string): Promise<Database> {
  const [database] = await make({ couch: createTestCouch() }, name)
  await installDocstate(database!, oldMachines)
  await database!.put(order('before'))
  return database!
}

/** Adds an order and checks that it stays unhandled before the deploy. */
async function leaveOne(rig: Rig, database: Database): Promise<void> {
  await atRest(rig)
  await database.put(order('meanwhile'))
  rig.report(database.name)
  await atRest(rig)
  expect(rig.handled).toEqual([])
}

const deploy = ({ name }: Database) =>
  deployDdocs({
    couch: createTestCouch(),
    deployments: [{ database: name, templates: [{ folder: ddocsFolder('docstate'), machines }] }],
  })

test('documents that wait for the deploy are handled as soon as the deploy is done', async () => {
  const prefix = createPrefix()
  const database = await makeOld(`${prefix}-db-a`)
  const rig = startVisits(prefix, { machines, lookAgainMs: HARDLY })
  await leaveOne(rig, database)
  await deploy(database)
  rig.report(database.name)
  await eventually(() => expect(rig.handled.sort()).toEqual(['before', 'meanwhile']))
})

test('documents that wait for the deploy are handled after a restart', async () => {
  const prefix = createPrefix()
  const database = await makeOld(`${prefix}-db-a`)
  const first = startVisits(prefix, { machines, lookAgainMs: HARDLY })
  await leaveOne(first, database)
  await first.stop()
  await deploy(database)
  const second = startVisits(prefix, { machines, lookAgainMs: HARDLY })
  await eventually(() => expect(second.handled.sort()).toEqual(['before', 'meanwhile']))
})

test('documents of a followed database that wait for the deploy are handled after it', async () => {
  const prefix = createPrefix()
  const database = await makeOld(`${prefix}-named`)
  const rig = startVisits(prefix, { machines, databases: [database.name] })
  await eventually(() => expect(rig.engines.get(database.name)?.rest()).toBeDefined())
  expect(rig.handled).toEqual([])
  await deploy(database)
  await eventually(() => expect(rig.handled).toEqual(['before']))
})

test('a design document read from a lagging copy is read again, up to a limit', async () => {
  const database = await makeOld(`${createPrefix()}-db-a`)
  const { _rev: old } = await database.get(DDOC_ID)
  let sleeps = 0
  let during = () => Promise.resolve()
  const clock = { ...systemClock, sleep: () => ((sleeps += 1), during()) }
  const table = { registrations: [], machines }
  const options = { couch: createTestCouch(), name: database.name, log: pino({ level: 'silent' }), table, clock }
  const before = { table: { ...table }, rev: '0-before' }
  const { signal } = new AbortController()
  expect(await matchAgain(options, before, '9-never', signal)).toEqual({ table, rev: old })
  expect(sleeps).toBe(19)
  during = () => deploy(database).then(() => undefined)
  expect((await matchAgain(options, before, `2-${'0'.repeat(32)}`, signal)).rev).not.toBe(old)
  expect(sleeps).toBe(20)
})

test('an invalid design document affects only its own database', async () => {
  const prefix = createPrefix()
  const couch = createTestCouch()
  const names = Array.from({ length: 4 }, (_, i) => `${prefix}-db-garbage-${i}`)
  const garbage = [{ order: { paid: null } }, { order: null }, null, [{ order: 'paid' }]]
  for (const [i, name] of names.entries()) {
    const [database] = await make({ couch }, name)
    await database!.put({ _id: '_design/docstate', machines: garbage[i] })
    await database!.put(order(`of-${i}`))
  }
  const rig = startVisits(prefix, { machines, lookAgainMs: SOON })
  await eventually(() => expect(rig.visited()).toMatchObject({ databases: 4, open: 0, waiting: 0 }))
  const [sound] = await make(rig, `${prefix}-db-sound`)
  await sound!.put(order('sound'))
  await eventually(() => expect(rig.handled).toEqual(['sound']))
})

test('a deleted and recreated database gets its design document again', async () => {
  const prefix = createPrefix()
  const name = `${prefix}-db-a`
  const rig = startVisits(prefix, { machines, lookAgainMs: HARDLY })
  for (const id of ['first', 'second']) {
    const [database] = await make(rig, name)
    await database!.put(order(id))
    rig.report(name, 'created')
    await eventually(() => expect(rig.handled).toContain(id))
    await eventually(() => expect(rig.visited()).toMatchObject({ open: 0, waiting: 0 }))
    expect(await database!.find('_design/docstate')).toMatchObject({ machines })
    await deleteDb(name)
    await sleep(1100) // CouchDB stores the creation time in seconds, so the two databases need different ones
  }
})
