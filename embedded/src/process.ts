/** The process of the server: its beginning and its end. It ends with this one, however that ends: the channel between them breaks. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { createInterface } from 'node:readline'
import { finished } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import type { Log } from './log.ts'

/** What the process is told first. */
export interface ServerSettings {
  readonly port: number
  /** Of the one server admin, `admin`. */
  readonly password: string
}

export interface ServerOptions extends ServerSettings {
  readonly log: Log
  readonly signal?: AbortSignal | undefined
}

export interface Server {
  /** Resolves when the process is gone. */
  stop(): Promise<void>
}

const STOP_MS = 2000
/** Compiled: Node 20 runs no TypeScript, and this module may run from its source. */
const PROGRAM = fileURLToPath(new URL('../dist/server/main.js', import.meta.url))

/** Resolves when the server listens. Throws where it ends instead, and the signal's reason. */
export async function startServer({ log, signal, port, password }: ServerOptions): Promise<Server> {
  signal?.throwIfAborted()
  const child = fork(PROGRAM, {
    cwd: tmpdir(),
    execArgv: ['--no-deprecation'],
    // Its own process group: Ctrl-C in a terminal must reach only the sidecar, which still needs its database to stop.
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const lastWords: string[] = []
  createInterface({ input: child.stderr! }).on('line', (line) => {
    log.debug({ line }, 'embedded CouchDB')
    if (lastWords.push(line) > 20) lastWords.shift()
  })

  let stopping = false
  // Not its 'close', which does not come after a disconnect.
  const gone = Promise.all([once(child, 'exit'), finished(child.stderr!)]).then(() => {
    if (!stopping) log.error({ lastWords }, 'the embedded CouchDB ended by itself')
  })
  const stop = async () => {
    stopping = true
    if (child.connected) child.disconnect()
    const impatience = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
    await gone
    clearTimeout(impatience)
  }

  const failed = gone.then(() => {
    throw new Error(`the embedded CouchDB ended instead of listening: ${lastWords.join('\n')}`)
  })
  try {
    child.send({ port, password } satisfies ServerSettings)
    await Promise.race([once(child, 'message', { signal }), failed])
  } catch (thrown) {
    await stop()
    signal?.throwIfAborted()
    throw thrown
  }
  return { stop }
}
