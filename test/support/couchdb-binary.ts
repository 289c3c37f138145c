/**
 * A private CouchDB from an installed binary: a free port, a directory of its own, a random password. It has a node
 * name only as a node of a cluster. Without one it needs no port mapper (epmd), which would outlive it.
 */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, readdir, readFile, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { startOnOwnPort } from './free-port.ts'
import { startOwnedProcess, type OwnedProcess } from './owned-process.ts'

export interface PrivateCouch {
  /** The URL with the admin's credentials. It is the same after a restart. */
  readonly url: string
  /** The process id of the server itself, for signals (`SIGSTOP` freezes it). It changes at a restart. */
  readonly pid: number
  /** Copies its current files, for `restart`. */
  copy(): Promise<FileCopy>
  /** Kills it as `kill -9` does, without a flush or a shutdown. Resolves when it has ended. */
  kill(): Promise<void>
  /**
   * Starts it again on the same port and data, and kills it first if it runs. While it is down, the files of these
   * copies replace its own.
   */
  restart(...copies: readonly FileCopy[]): Promise<void>
  /** Ends it and removes its data. */
  stop(): Promise<void>
}

/** An older copy of files in a server's data directory. */
export interface FileCopy {
  readonly folder: string
  /** The files of these shards only, by path, as `shards/00000000-7fffffff/db.1767225600.couch`. */
  readonly isWanted: (path: string) => boolean
}

/** The files of some databases, or of one range of each. */
export const only = ({ folder }: FileCopy, databases: readonly string[], range = ''): FileCopy => ({
  folder,
  isWanted: (path) => path.includes(range) && databases.some((name) => path.includes(`/${name}.`)),
})

/** The ranges of databases with two shards. */
export const [FIRST_RANGE, LAST_RANGE] = ['00000000-7fffffff', '80000000-ffffffff'] as const

/** The settings of a cluster node: those that all nodes share, and its own. */
export interface NodeSettings {
  /** `couchdb1@127.0.0.1` */
  readonly name: string
  readonly cookie: string
  readonly epmdPort: number
  readonly password: string
}

const START_MS = 90_000
/** Iterations for the passwords that this server hashes. Its default, 600,000, costs 0.3 s for each user and login. */
const HASH_ITERATIONS = 1000
/**
 * One thread of each kind, which sleeps as soon as it is idle. Several servers share two cores with the tests, and a
 * third of a server's cost was threads that busy-waited or woke each other.
 */
const THREADS = '+S 1:1 +SDcpu 1:1 +SDio 1 +sbwt none +sbwtdcpu none +sbwtdio none'

/** The path of the binary, if it exists: `COUCHDB_BIN`, or the path of CouchDB's packages. */
export function findCouchBinary(): string | undefined {
  const binary = process.env.COUCHDB_BIN ?? '/opt/couchdb/bin/couchdb'
  return existsSync(binary) ? binary : undefined
}

const MEMORY = '/dev/shm'
const ROOMY_BYTES = 4e9

/** A folder for temporary data: in memory if it has enough room, on a disk otherwise. */
async function findRoom(): Promise<string> {
  if (!existsSync(MEMORY)) return tmpdir()
  const { bavail, bsize } = await statfs(MEMORY)
  return bavail * bsize > ROOMY_BYTES ? MEMORY : tmpdir()
}

const TASKSET = '/usr/bin/taskset'

/** The same command on one processor. On two, threads that wake each other cost half as much again. */
async function onOneProcessor(command: readonly string[], port: number): Promise<readonly string[]> {
  if (!existsSync(TASKSET)) return command
  const { stdout } = await promisify(execFile)(TASKSET, ['-c', '-p', String(process.pid)]) // `… affinity list: 0-2,4`
  const processors = stdout
    .slice(stdout.lastIndexOf(' '))
    .split(',')
    .flatMap((range) => {
      const [from, to = from] = range.split('-').map(Number)
      return Array.from({ length: to! - from! + 1 }, (_, i) => from! + i)
    })
  return [TASKSET, '-c', String(processors[port % processors.length]), ...command]
}

export interface BinaryOptions {
  /** A cluster node is up before its cluster: it has no system databases then. */
  readonly node?: NodeSettings | undefined
  /**
   * Runs as an installation does: all processors, all threads, default hashing, data on the disk. Default: the least
   * resources.
   */
  readonly asInstalled?: boolean
}

export async function startCouchBinary(binary: string, options: BinaryOptions = {}): Promise<PrivateCouch> {
  const { node, asInstalled = false } = options
  const home = await mkdtemp(join(asInstalled ? tmpdir() : await findRoom(), 'couchdb-test-'))
  const password = node?.password ?? randomBytes(16).toString('hex')
  const proof = node ? '_up' : '_users'
  try {
    return await startOnOwnPort(async (port) => {
      const env = { ...process.env, ...(await configure({ binary, home, port, password, node, asInstalled })) }
      const url = `http://admin:${password}@127.0.0.1:${port}`
      const command = asInstalled ? [binary] : await onOneProcessor([binary], port)
      let running = await run({ command, home, env, url, proof })
      let copies = 0
      return {
        url,
        get pid() {
          return running.pid
        },
        async copy() {
          const folder = join(home, `copy-${++copies}`)
          await cp(join(home, 'data'), folder, { recursive: true })
          return { folder, isWanted: () => true }
        },
        kill: () => running.end('keep'),
        async restart(...older) {
          await running.end('keep')
          for (const copy of older) await putBack(copy, join(home, 'data'))
          running = await run({ command, home, env, url, proof })
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

async function putBack({ folder, isWanted }: FileCopy, data: string): Promise<void> {
  const files = await readdir(data, { recursive: true, withFileTypes: true })
  const wanted = async (path: string) => (await stat(path)).isDirectory() || isWanted(path)
  for (const file of files.filter((file) => file.isFile())) {
    const path = join(file.parentPath, file.name)
    if (isWanted(path)) await rm(path) // otherwise an index that the copy lacks would remain
  }
  await cp(folder, data, { recursive: true, filter: wanted })
}

interface RunOptions {
  readonly command: readonly string[]
  readonly home: string
  readonly env: NodeJS.ProcessEnv
  readonly url: string
  /** Text that the answer of the server contains once it is up. */
  readonly proof: string
}

/** Starts the process and waits until it is up. */
async function run({ command, home, env, url, proof }: RunOptions): Promise<OwnedProcess> {
  const started = await startOwnedProcess({ command, home, log: 'couch.log', env })
  try {
    await untilUp(url, proof)
    return started
  } catch (thrown) {
    await started.end('keep')
    const log = await readFile(join(home, 'couch.log'), 'utf8')
    throw new Error(`CouchDB did not start within ${START_MS} ms: ${log.slice(-2000)}`, { cause: thrown })
  }
}

interface ConfigureOptions {
  readonly binary: string
  readonly home: string
  readonly port: number
  readonly password: string
  readonly node: NodeSettings | undefined
  readonly asInstalled: boolean
}

/** Writes its configuration. Returns the environment that selects it. */
async function configure({
  binary,
  home,
  port,
  password,
  node,
  asInstalled,
}: ConfigureOptions): Promise<NodeJS.ProcessEnv> {
  const etc = join(dirname(binary), '..', 'etc')
  const ini = `[couchdb]
database_dir = ${home}/data
view_index_dir = ${home}/data
single_node = ${!node}
[chttpd]
port = ${port}
bind_address = 127.0.0.1
[admins]
admin = ${password}
${asInstalled ? '' : `[chttpd_auth]\niterations = ${HASH_ITERATIONS}\n`}[log]
level = warning
`
  await writeFile(join(home, 'local.ini'), ini)
  const args = (await readFile(join(etc, 'vm.args'), 'utf8')).replace(/^-(s?name|setcookie) .*$/gm, '')
  const distribution = node ? `-name ${node.name}\n-setcookie ${node.cookie}\n-start_epmd false\n` : ''
  await writeFile(join(home, 'vm.args'), `${args}\n${asInstalled ? '' : THREADS}\n${distribution}`)
  return {
    COUCHDB_INI_FILES: `${join(etc, 'default.ini')} ${join(home, 'local.ini')}`,
    COUCHDB_ARGS_FILE: join(home, 'vm.args'),
    ...(node && { ERL_EPMD_PORT: String(node.epmdPort) }),
  }
}

/** The server is up when it reports so and has created its system databases. */
async function untilUp(url: string, proof: string): Promise<void> {
  const { origin, username, password } = new URL(url)
  const headers = { authorization: `Basic ${btoa(`${username}:${password}`)}` }
  const isUp = async (path: string) => (await fetch(`${origin}/${path}`, { headers })).ok
  const deadline = performance.now() + START_MS
  for (;;) {
    try {
      if ((await isUp('_up')) && (await isUp(proof))) return
    } catch (refused) {
      if (performance.now() > deadline) throw refused
    }
    if (performance.now() > deadline) throw new Error('the server answers but is not up yet')
    await delay(50)
  }
}
