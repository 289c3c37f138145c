/**
 * A CouchDB of one's own, from the binary of an installation: a free port, a directory of its own, a random password,
 * one node. It has no node name, so that it needs no port mapper (epmd), which would outlive it.
 *
 * A shell stands between, and ends it with this process, however this process ends: its `read` returns when the pipe
 * to it breaks. Unless it was told to keep the data, it removes them.
 */
import { spawn } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { startOnFreePort } from '../../sidecar/embedded/free-port.ts'

export interface PrivateCouch {
  /** With the admin's credentials. The same after a restart. */
  readonly url: string
  /** Of the server itself, for signals (`SIGSTOP` freezes it). Another one after a restart. */
  readonly pid: number
  /** As by `kill -9`: nothing is flushed or said to anybody. Resolves when it is gone. */
  kill(): Promise<void>
  /** Starts it again on the same port and data; kills it first if it runs. */
  restart(): Promise<void>
  /** Ends it and removes its data. */
  stop(): Promise<void>
}

const START_MS = 30_000
const SHELL = `
"$0" >>"$1/couch.log" 2>&1 </dev/null &
echo $!
read -r keep
kill -9 $! 2>/dev/null
wait $! 2>/dev/null
[ "$keep" ] || rm -rf "$1"`

/** Where the binary is, if there is one: `COUCHDB_BIN`, or where CouchDB's packages put it. */
export function findCouchBinary(): string | undefined {
  const binary = process.env.COUCHDB_BIN ?? '/opt/couchdb/bin/couchdb'
  return existsSync(binary) ? binary : undefined
}

export async function startCouchBinary(binary: string): Promise<PrivateCouch> {
  const home = await mkdtemp(join(tmpdir(), 'couchdb-test-'))
  const password = randomBytes(16).toString('hex')
  try {
    // Below the ports that the system gives to outgoing connections, one of which might take it during a restart.
    return await startOnFreePort(randomInt(20_000, 32_000), async (port) => {
      const env = { ...process.env, ...(await configure(binary, home, port, password)) }
      const url = `http://admin:${password}@127.0.0.1:${port}`
      let running = await run(binary, home, env, url)
      return {
        url,
        get pid() {
          return running.pid
        },
        kill: () => running.end('keep'),
        async restart() {
          await running.end('keep')
          running = await run(binary, home, env, url)
        },
        async stop() {
          await running.end('remove')
          await rm(home, { recursive: true, force: true })
        },
      }
    })
  } catch (thrown) {
    await rm(home, { recursive: true, force: true })
    throw thrown
  }
}

/** Starts the process and waits until it is up. */
async function run(binary: string, home: string, env: NodeJS.ProcessEnv, url: string) {
  const started = await startProcess(binary, home, env)
  try {
    await untilUp(url)
    return started
  } catch (thrown) {
    await started.end('keep')
    const log = await readFile(join(home, 'couch.log'), 'utf8')
    throw new Error(`CouchDB did not start within ${START_MS} ms: ${log.slice(-2000)}`, { cause: thrown })
  }
}

/** Writes its configuration; returns the environment that leads it there. */
async function configure(binary: string, home: string, port: number, password: string) {
  const etc = join(dirname(binary), '..', 'etc')
  const ini = `[couchdb]
database_dir = ${home}/data
view_index_dir = ${home}/data
single_node = true
[chttpd]
port = ${port}
bind_address = 127.0.0.1
[admins]
admin = ${password}
[log]
level = warning
`
  await writeFile(join(home, 'local.ini'), ini)
  const args = await readFile(join(etc, 'vm.args'), 'utf8')
  await writeFile(join(home, 'vm.args'), args.replace(/^-s?name .*$/m, ''))
  return {
    COUCHDB_INI_FILES: `${join(etc, 'default.ini')} ${join(home, 'local.ini')}`,
    COUCHDB_ARGS_FILE: join(home, 'vm.args'),
  }
}

async function startProcess(binary: string, home: string, env: NodeJS.ProcessEnv) {
  // Detached: Ctrl-C is for the test runner, which then ends this.
  const shell = spawn('/bin/sh', ['-c', SHELL, binary, home], {
    env,
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const gone = once(shell, 'exit')
  const [pid] = (await once(createInterface({ input: shell.stdout }), 'line')) as [string]
  return {
    pid: Number(pid),
    /** Kills it. Fine if it is gone already. */
    async end(data: 'keep' | 'remove') {
      if (!shell.stdin.writableEnded) shell.stdin.end(data === 'keep' ? 'keep\n' : '')
      await gone
    },
  }
}

/** It is up when it says so and has made its system databases. */
async function untilUp(url: string): Promise<void> {
  const { origin, username, password } = new URL(url)
  const headers = { authorization: `Basic ${btoa(`${username}:${password}`)}` }
  const isUp = async (path: string) => (await fetch(`${origin}/${path}`, { headers })).ok
  const deadline = performance.now() + START_MS
  for (;;) {
    try {
      if ((await isUp('_up')) && (await isUp('_users'))) return
    } catch (refused) {
      if (performance.now() > deadline) throw refused
    }
    if (performance.now() > deadline) throw new Error('it answers, but is not up')
    await delay(50)
  }
}
