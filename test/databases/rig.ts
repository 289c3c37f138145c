import pino from 'pino'
import { onTestFinished } from 'vitest'
import type { Machines } from '../../ddocs/machine.ts'
import { systemClock } from '../../sidecar/core/clock.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import type { Doc } from '../../sidecar/couch/documents.ts'
import { serveDatabases, type ServeOptions } from '../../sidecar/databases/databases-feature.ts'
import { Lease } from '../../sidecar/docstate/claims/lease.ts'
import { createControl, type Control } from '../../sidecar/docstate/control.ts'
import type { Engine } from '../../sidecar/docstate/engine.ts'
import { createEvents } from '../../sidecar/events/channels.ts'
import { createDatabaseCounters } from '../../sidecar/databases/databases-feature.ts'
import { createRegistry } from '../../sidecar/workers/registry.ts'
import { everything, type Partitioning } from '../../sidecar/workers/partitioning.ts'
import { createCompiler } from '../../sidecar/deploy/compiler.ts'
import { couchUrl, createAgain, createTestCouch, deleteDb, uniqueName } from '../support/couchdb.ts'
import { answerOf } from '../support/answers.ts'

export interface RigOptions extends Partial<ServeOptions> {
  /** The URL of the server or of a proxy before it. */
  readonly by?: string
  readonly url?: string
  /** Default 30 s. */
  readonly leaseMs?: number
  /** By default, no machines and one handler that invoices paid orders. */
  readonly machines?: Machines
  readonly register?: (control: Control<Machines>, handled: string[]) => void
}

const invoice = (control: Control<Machines>, handled: string[]) =>
  control.safe('order', 'paid', (doc) => {
    handled.push(doc._id)
    return Promise.resolve({ ...doc, state: 'invoiced' })
  })

/** Returns a name prefix for the databases of one test. The databases are deleted after the test. */
export function createPrefix(): string {
  const prefix = uniqueName('visited')
  onTestFinished(async () => {
    const couch = createTestCouch()
    const names = await answerOf<string[]>(couch, { path: '_all_dbs' })
    for (const name of names) if (name.startsWith(prefix)) await deleteDb(name)
  })
  return prefix
}

/** The partitioning of a single worker. */
const undivided: Partitioning = {
  ...{ of: () => everything, whole: () => everything, known: Promise.resolve(), onChange: () => undefined },
}

/** Serves a control database and the databases of a glob until the end of the test. */
export function startVisits(
  prefix: string,
  { url = couchUrl(), by = url, machines = {}, register = invoice, leaseMs = 30_000, ...own }: RigOptions = {},
) {
  const couch = createTestCouch({ url })
  const log = pino({ level: process.env.SIDECAR_LOG_LEVEL ?? 'silent' })
  const events = own.events ?? createEvents({ log })
  const [controlDb, databases] = own.databases
    ? [`${prefix}-control`, own.databases]
    : [`${prefix}-control`, [`${prefix}-db-*`]]
  const control = createControl(machines)
  const handled: string[] = []
  register(control, handled)
  const engines = new Map<string, Engine>()
  const databaseCounters = createDatabaseCounters([controlDb, ...databases])
  const [clock, random] = [own.clock ?? systemClock, Math.random]
  const seen = createTestCouch({ url: by })
  const served = serveDatabases({
    ...{
      couch: seen,
      compiler: createCompiler(),
      engines,
      controlDb,
      worker: 'one',
      clock,
      random,
      log,
      reads: 32,
      hasDatabaseEvents: () => true,
    },
    mailer: { forEntry: ({ done }) => ({ done, send: () => Promise.reject(new Error('no mail in this test')) }) },
    workers: createRegistry({ database: seen.db(controlDb), events, clock, random, log }),
    partitioning: undivided,
    countsOf: databaseCounters.of,
    lease: new Lease({ leaseMs, clock, log }),
    ...own,
    ...{ events, databases },
    jobOf: (name) =>
      name === controlDb ? { kind: 'control', table: createControl({}) } : { kind: 'docstate', table: control },
  })
  const stopping = new AbortController()
  const running = served.run(stopping.signal)
  const stop = async () => {
    stopping.abort(new Error('the test is over'))
    await running
  }
  onTestFinished(stop)
  return {
    ...{ couch, events, engines, databaseCounters, handled, served, stop, controlDb, table: control },
    visited: () => served.visited.counts(),
    report: (database: string, what: 'created' | 'updated' | 'deleted' = 'updated') =>
      events.channel(`database:${what}`)?.publish({ database, account: '_admin' }),
  }
}

export type Rig = ReturnType<typeof startVisits>

/** Creates databases with these names, also of databases that were just deleted. */
export async function make(rig: Pick<Rig, 'couch'>, ...names: string[]): Promise<Database[]> {
  const made = names.map((name) => rig.couch.db(name))
  for (const database of made) await createAgain(database)
  return made
}

export const order = (_id: string, fields: object = {}): Doc => ({ _id, type: 'order', state: 'paid', ...fields })
export const stateOf = async (database: Database, id: string) => (await database.find(id))?.state
