import { randomBytes } from 'node:crypto'
import { defineMachines, type Machines } from '../ddocs/machine.ts'
import type { Couch } from '../sidecar/couch/client.ts'
import type { Database } from '../sidecar/couch/database.ts'
import { compileDdocs, ddocsFolder } from '../sidecar/deploy/compile.ts'

/** A state machine as a user declares it. It adds the guard that CouchDB runs for every write. */
export const orderMachines = (mode: 'safe' | 'unsafe'): Machines =>
  defineMachines({ order: { paid: { mode, create: 'client', next: { invoiced: 'sidecar' } }, invoiced: {} } })

const order = (number: number) => ({
  _id: `order-${String(number).padStart(6, '0')}`,
  type: 'order',
  state: 'paid',
  owner: `owner-${number}@example.com`,
  lines: [{ article: 'A-4711', count: 2, price: 19.9 }],
  note: 'Please leave it with the neighbours if nobody is at home.',
})

/** A new database with the sidecar's design document and `count` pending documents of about 250 bytes. */
export async function fillDatabase(couch: Couch, count: number, machines: Machines): Promise<Database> {
  const database = couch.db(`bench-${randomBytes(6).toString('hex')}`)
  await database.create()
  for (const ddoc of await compileDdocs({ folder: ddocsFolder('docstate'), machines })) await database.put(ddoc)
  for (let from = 0; from < count; from += 1000) {
    const length = Math.min(1000, count - from)
    await database.bulk(Array.from({ length }, (_, i) => JSON.stringify(order(from + i))))
  }
  return database
}

export const dropDatabase = (couch: Couch, { name }: Database) => couch.request({ method: 'DELETE', db: name })
