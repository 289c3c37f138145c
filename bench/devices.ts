import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Couch } from '../sidecar/couch/client.ts'
import { dropDatabase, fillDatabase } from './database.ts'
import type { DevicesJob } from './devices/job.ts'
import { inParallel } from './in-parallel.ts'
import type { Line } from './report.ts'

const CHANNELS = 100

/** The cost for CouchDB of devices that replicate by the client, in a separate process: two for each channel. */
export async function measureDevices(couch: Couch, url: string, serverPid: number | undefined): Promise<Line[]> {
  if (serverPid === undefined) return [{ what: 'what devices cost', figure: 'not known of a server elsewhere' }]
  const databases = await Promise.all(Array.from({ length: CHANNELS }, () => fillDatabase(couch, 0, {})))
  try {
    const job: DevicesJob = { url, serverPid, names: databases.map(({ name }) => name) }
    const script = fileURLToPath(new URL('./devices/process.ts', import.meta.url))
    const child = fork(script, [JSON.stringify(job)], { execArgv: ['--import', 'tsx'] })
    const exited = once(child, 'exit')
    const [received] = (await Promise.race([once(child, 'message'), exited])) as [Line[] | number]
    if (typeof received !== 'object') throw new Error(`the process of the devices ended with ${String(received)}`)
    await exited
    return received
  } finally {
    await inParallel(databases, (database) => dropDatabase(couch, database))
  }
}
