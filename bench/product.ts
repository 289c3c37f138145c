import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../dist/sidecar/main.js', import.meta.url))
const liveBytes = fileURLToPath(new URL('./live-bytes.js', import.meta.url))

export interface Product {
  readonly child: ChildProcess
  /** The URL of its HTTP server, with the credentials of CouchDB's admin. */
  readonly url: string
  /** Bytes in use in its heap and its buffers, after a collection. */
  readonly live: () => Promise<number>
  /** Number of handlers that have begun. */
  readonly begun: () => number
  readonly stop: () => Promise<void>
}

/** The whole product as a process, with a slow handler. It handles the database of this name, or others. */
export async function startProduct(url: string, name: string, delayMs: number, databases = name): Promise<Product> {
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'sidecar-bench-'))
  const handlers = join(folder, 'handlers.mjs')
  const wait = `await new Promise((resolve) => setTimeout(resolve, ${delayMs}))`
  await writeFile(
    handlers,
    `export default { machines: {}, register(control) {
      control.unsafe('order', 'paid', async (doc) => { process.send('begun'); ${wait}; return { ...doc, state: 'invoiced', handled_at: Date.now() } })
    } }`,
  )
  const env = {
    ...process.env,
    ...{ COUCHDB_URL: url, SMTP_URL: 'smtp://127.0.0.1:1', SIDECAR_PORT: `${port}`, SIDECAR_LOG_LEVEL: 'warn' },
    ...{ SIDECAR_CONTROL_DB: `${name}-control`, SIDECAR_DATABASES: databases, SIDECAR_HANDLERS: handlers },
    ...{ SIDECAR_GLOBAL_CHANGES_DB: `${name}-events` },
  }
  const execArgv = ['--expose-gc', '--import', liveBytes]
  // Without pipes: a full pipe would block the process.
  const child = fork(main, ['start'], { env, stdio: ['ignore', 'ignore', 'inherit', 'ipc'], execArgv })
  const { username, password } = new URL(url)
  let begun = 0
  let receiveBytes = (_bytes: number) => {}
  child.on('message', (message) => {
    if (message === 'begun') begun += 1
    else receiveBytes(Number(message))
  })
  return {
    child,
    url: `http://${username}:${password}@127.0.0.1:${port}`,
    live() {
      const bytes = new Promise<number>((resolve) => (receiveBytes = resolve))
      child.send('live')
      return bytes
    },
    begun: () => begun,
    async stop() {
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
      await rm(folder, { recursive: true })
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}
