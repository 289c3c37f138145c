import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Couch } from '../sidecar/couch/client.ts'
import { dropDatabase, fillDatabase } from './database.ts'

const main = fileURLToPath(new URL('../dist/sidecar/main.js', import.meta.url))

/** The whole product as a process, with a handler that takes its time. */
async function startSidecar(
  url: string,
  name: string,
  delayMs: number,
): Promise<{ child: ChildProcess; stop: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'sidecar-bench-'))
  const handlers = join(folder, 'handlers.mjs')
  const wait = `await new Promise((resolve) => setTimeout(resolve, ${delayMs}))`
  await writeFile(
    handlers,
    `export default { machines: {}, register(control) {
      control.unsafe('order', 'paid', async (doc) => { ${wait}; return { ...doc, state: 'invoiced' } })
    } }`,
  )
  const env = {
    ...process.env,
    ...{ COUCHDB_URL: url, SMTP_URL: 'smtp://127.0.0.1:1', SIDECAR_PORT: '0', SIDECAR_LOG_LEVEL: 'warn' },
    ...{ SIDECAR_CONTROL_DB: `${name}-control`, SIDECAR_DATABASES: name, SIDECAR_HANDLERS: handlers },
  }
  const child = fork(main, ['start'], { env, silent: true, execArgv: [] })
  return {
    child,
    async stop() {
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
      await rm(folder, { recursive: true })
    },
  }
}

/** The most memory the process has had while `count` documents waited and its handlers were slow. Bytes. */
export async function measurePeakMemory(couch: Couch, url: string, count: number, seconds: number): Promise<number> {
  const database = await fillDatabase(couch, count, {})
  const { child, stop } = await startSidecar(url, database.name, 100)
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  const status = await readFile(`/proc/${child.pid}/status`, 'utf8')
  await stop()
  await dropDatabase(couch, database)
  await couch.request({ method: 'DELETE', db: `${database.name}-control` })
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)![1]) * 1024
}

export interface Idle {
  /** Documents written. `_local` ones, as signs of life are, do not count as such. */
  readonly writes: number
  /** PUT and DELETE of anything. */
  readonly requests: number
}

/** What a sidecar that has nothing to do writes in this time. */
export async function measureIdle(couch: Couch, url: string, seconds: number): Promise<Idle> {
  const database = await fillDatabase(couch, 50, {})
  const { stop } = await startSidecar(url, database.name, 0)
  await new Promise((resolve) => setTimeout(resolve, 15_000)) // all is handled, and the place is written
  const before = await countWrites(couch)
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  const after = await countWrites(couch)
  await stop()
  await dropDatabase(couch, database)
  await couch.request({ method: 'DELETE', db: `${database.name}-control` })
  return { writes: after.writes - before.writes, requests: after.requests - before.requests }
}

async function countWrites(couch: Couch): Promise<Idle> {
  type Counter = { readonly value: number }
  const stats = await couch.request<{ document_writes: Counter; httpd_request_methods: Record<string, Counter> }>({
    path: '_node/_local/_stats/couchdb',
  })
  const { PUT, DELETE } = stats.httpd_request_methods
  return { writes: stats.document_writes.value, requests: PUT!.value + DELETE!.value }
}
