/**
 * The processor time of single requests in CouchDB: for databases with open files, and for databases whose files it
 * must open first, because it keeps fewer open (`max_dbs_open`, 500 shards). `docs/scale.md` uses these figures.
 */
import type { Couch } from '../sidecar/couch/client.ts'
import type { Database } from '../sidecar/couch/database.ts'
import { dropDatabase, fillDatabase } from './database.ts'
import { inParallel } from './in-parallel.ts'
import type { Line } from './report.ts'
import { usageOf } from './usage.ts'

/** The numbers of databases, of two shards each: the first stay open, and of the second some are always closed. */
const [OPEN, ALL] = [50, 600]
const TIMES = 3000
/** The number of databases in one request of the sidecar. */
const LOOKED_AT_ONCE = 100

export async function measureRequests(couch: Couch, serverPid: number | undefined): Promise<Line[]> {
  if (serverPid === undefined) return [{ what: 'what single requests cost', figure: 'not known of a server elsewhere' }]
  const all: Database[] = []

  /** Processor milliseconds for each request. */
  async function costOf(work: () => Promise<unknown>, count: number): Promise<string> {
    const before = await usageOf(serverPid!)
    await work()
    return (((await usageOf(serverPid!)).cpuSeconds - before.cpuSeconds) * (1000 / count)).toFixed(2)
  }

  /** In turn, so that the files of earlier databases are closed again. */
  const each = (databases: readonly Database[], ask: (database: Database) => Promise<unknown>) => () =>
    inParallel(
      Array.from({ length: TIMES }, (_, i) => databases[i % databases.length]!),
      ask,
    )

  const look = (databases: readonly Database[]) => async () => {
    for (let from = 0; from < TIMES; from += LOOKED_AT_ONCE) {
      const keys = Array.from({ length: LOOKED_AT_ONCE }, (_, i) => databases[(from + i) % databases.length]!.name)
      await couch.request({ method: 'POST', path: '_dbs_info', body: { keys } })
    }
  }
  const read = (database: Database) => database.get('_design/docstate')
  const write = (database: Database) => couch.request({ method: 'POST', db: database.name, body: { type: 'note' } })

  try {
    const numbers = Array.from({ length: ALL }, (_, number) => number)
    await inParallel(numbers, async () => all.push(await fillDatabase(couch, 0, {})))
    const open = all.slice(0, OPEN)
    await each(open, read)()
    const both = async (what: string, work: (databases: readonly Database[]) => () => Promise<unknown>) => {
      const [near, far] = [await costOf(work(open), TIMES), await costOf(work(all), TIMES)]
      const line = { what, figure: `${near} ms of processor; ${far} ms where files have to be opened` }
      console.log(`${line.what}: ${line.figure}`)
      return line
    }
    return [
      await both(`a look at one of ${LOOKED_AT_ONCE} databases (_dbs_info)`, look),
      await both('a read of a document', (databases) => each(databases, read)),
      await both('a write of a document, with the guard', (databases) => each(databases, write)),
    ]
  } finally {
    await inParallel(all, (database) => dropDatabase(couch, database))
  }
}
