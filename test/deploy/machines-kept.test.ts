/** A deploy without the handlers of another application keeps its documents guarded. */
import { describe, expect, test } from 'vitest'
import type { Machines } from '../../ddocs/machine.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import { ddocsFolder } from '../../sidecar/deploy/compile.ts'
import { deployDdocs, type DeployOptions } from '../../sidecar/deploy/deploy.ts'
import { formatReport } from '../../sidecar/deploy/format-report.ts'
import { createAnonymous, openToAll } from '../ddocs/users.ts'
import { tryPut } from '../ddocs/guarded-db.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { refuse, startFaultyProxy } from '../support/faulty-proxy.ts'

const order: Machines = {
  order: { paid: { mode: 'safe', create: 'client', next: { invoiced: 'sidecar' } }, invoiced: {} },
}
const bill: Machines = { bill: { open: { create: 'client' } } }

const bring = (db: Database, machines: Machines, options: Partial<DeployOptions> = {}) => {
  const deployments = [{ database: db.name, templates: [{ folder: ddocsFolder('docstate'), machines }] }]
  return deployDdocs({ couch: createTestCouch(), deployments, ...options })
}

const machinesIn = async (db: Database) => (await db.get('_design/docstate')).machines

describe('machines that only the database declares', () => {
  test.each([true, false])('machines without handlers here are kept and listed (dry run: %s)', async (dryRun) => {
    const db = await freshDb('machines')
    await bring(db, order)
    const report = await bring(db, {}, { dryRun })
    expect(report.databases[0]!.ddocs).toEqual([{ kind: 'unchanged', id: '_design/docstate', kept: ['order'] }])
    expect(formatReport(report)).toContain('= machines.order stays: no handlers declare it here (--remove-machines')
    expect(await machinesIn(db)).toEqual(order)
    await openToAll(createTestCouch(), db.name)
    expect(await tryPut(createAnonymous(), db, { _id: 'o', type: 'order', state: 'invoiced' })).toContain('begins in')
  })

  test('existing machines are kept beside new ones, with the current guard', async () => {
    const db = await freshDb('machines')
    await bring(db, order)
    const { validate_doc_update: guard, ...old } = await db.get('_design/docstate')
    await db.put({ ...old, validate_doc_update: 'function () {}' })
    const report = await bring(db, bill)
    expect(report.databases[0]!.ddocs).toMatchObject([{ kind: 'updated', kept: ['order'] }])
    expect(await machinesIn(db)).toEqual({ ...order, ...bill })
    expect((await db.get('_design/docstate')).validate_doc_update).toBe(guard)
  })

  test('a machine is replaced by a new one of the same type', async () => {
    const db = await freshDb('machines')
    await bring(db, order)
    const changed: Machines = { order: { ...order.order, archived: {} } }
    const report = await bring(db, changed)
    expect(report.databases[0]!.ddocs[0]).not.toHaveProperty('kept')
    expect(await machinesIn(db)).toEqual(changed)
  })

  test('the remove option deletes machines, and the last one takes the guard with it', async () => {
    const db = await freshDb('machines')
    await bring(db, { ...order, ...bill })
    await bring(db, bill, { removeMachines: true })
    expect(await machinesIn(db)).toEqual(bill)
    const report = await bring(db, {}, { removeMachines: true })
    expect(formatReport(report)).toContain('- validate_doc_update')
    expect(await machinesIn(db)).toEqual({})
    expect(await db.get('_design/docstate')).not.toHaveProperty('validate_doc_update')
  })

  test('machines that another deploy adds at the same moment are kept', async () => {
    const db = await freshDb('machines')
    const proxy = await startFaultyProxy()
    proxy.next(
      async (exchange) => {
        await bring(db, order)
        await refuse(409, { error: 'conflict', reason: 'Document update conflict.' })(exchange)
      },
      ({ method }) => method === 'PUT',
    )
    await bring(db, bill, { couch: createTestCouch({ url: proxy.url }) })
    expect(await machinesIn(db)).toEqual({ ...order, ...bill })
  })
})
