/**
 * The process of `pouchdb-server`: its directory, its configuration, its beginning and its end. It is started under
 * `pouchdb-guard.ts`, which also ends it when this process ends, even by `kill -9`: the channel between them breaks.
 */
import { fork } from 'node:child_process'
import { pbkdf2Sync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { finished } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { Logger } from 'pino'
import { SidecarError } from '../core/errors.ts'
import { withEsbuild } from '../core/esbuild.ts'
import { loadOptional } from './optional.ts'

export interface PouchdbServerOptions {
  readonly port: number
  /** Of the one server admin, `admin`. */
  readonly password: string
  readonly log: Logger
  readonly signal?: AbortSignal | undefined
}

export interface PouchdbServer {
  /** Resolves when the process is gone and its directory removed. */
  stop(): Promise<void>
}

const STOP_MS = 2000

/**
 * Resolves when the server listens. Throws `ConfigError` where pouchdb-server is not installed, `SidecarError` (code
 * `embedded_couch`) where it ends instead of listening, the signal's reason.
 */
export async function startPouchdbServer(options: PouchdbServerOptions): Promise<PouchdbServer> {
  const { log, signal } = options
  signal?.throwIfAborted()
  const program = await loadOptional('pouchdb-server', 'COUCHDB_URL', () =>
    createRequire(import.meta.url).resolve('pouchdb-server'),
  )
  const home = await mkdtemp(join(tmpdir(), 'couchdb-sidecar-'))
  await writeFile(join(home, 'config.json'), JSON.stringify(configFrom(options)))
  await writeFile(join(home, 'guard.mjs'), await compileGuard())

  // Without any argument it prints its help and ends.
  const child = fork(program, ['--no-stdout-logs'], {
    cwd: home,
    execArgv: ['--no-deprecation', '--import', './guard.mjs'],
    // Its own process group: Ctrl-C in a terminal must reach only the sidecar, which still needs its database to stop.
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const lastWords: string[] = []
  createInterface({ input: child.stderr! }).on('line', (line) => {
    log.debug({ line }, 'pouchdb-server')
    if (lastWords.push(line) > 20) lastWords.shift()
  })

  let stopping = false
  // Not its 'close', which does not come after a disconnect.
  const gone = Promise.all([once(child, 'exit'), finished(child.stderr!)]).then(async () => {
    await rm(home, { recursive: true, force: true })
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
    throw new SidecarError('embedded_couch', `pouchdb-server ended instead of listening: ${lastWords.join('\n')}`)
  })
  try {
    await Promise.race([once(child, 'message', { signal }), failed])
  } catch (thrown) {
    await stop()
    signal?.throwIfAborted()
    throw thrown
  }
  return { stop }
}

/** A random password needs no key stretching, and pouchdb-server would pay for it on every request. */
function configFrom({ port, password }: PouchdbServerOptions) {
  const salt = randomBytes(16).toString('hex')
  const key = pbkdf2Sync(password, salt, 1, 20, 'sha1').toString('hex')
  return {
    admins: { admin: `-pbkdf2-${key},${salt},1` },
    httpd: { port, bind_address: '127.0.0.1' },
    log: { level: 'none' },
    pouchdb_server: { in_memory: true },
  }
}

/** Node 20 runs no TypeScript, and this may run from source. Takes the compiled guard as well. */
async function compileGuard(): Promise<string> {
  const source = new URL(import.meta.url.endsWith('.ts') ? './pouchdb-guard.ts' : './pouchdb-guard.js', import.meta.url)
  const { outputFiles } = await withEsbuild(() =>
    build({
      entryPoints: [fileURLToPath(source)],
      bundle: true,
      write: false,
      platform: 'node',
      format: 'esm',
      target: 'node20',
    }),
  )
  return outputFiles[0]!.text
}
