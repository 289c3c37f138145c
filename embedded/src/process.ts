/** Starts and stops the server process. It ends with this process in any case, because their IPC channel breaks. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { createInterface } from 'node:readline'
import { finished } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import type { Log } from './log.ts'

/** The first message to the process. */
export interface ServerSettings {
  readonly port: number
  /** Password of the only server admin, `admin`. */
  readonly password: string
}

export interface ServerOptions extends ServerSettings {
  readonly log: Log
  readonly signal?: AbortSignal | undefined
}

export interface Server {
  /** Resolves when the process has exited. */
  stop(): Promise<void>
}

const STOP_MS = 2000
/** The compiled program: Node 20 does not run TypeScript, and this module may run from its source. */
const PROGRAM = fileURLToPath(new URL('../dist/server/main.js', import.meta.url))

/** Resolves when the server listens. Throws if the process ends first, and the signal's reason. */
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
  // Not the event 'close', which is missing after a disconnect.
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
