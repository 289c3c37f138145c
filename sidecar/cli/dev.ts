import { fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { watch } from 'chokidar'
import type { Config } from '../config.ts'
import { withAcquired } from '../core/acquire.ts'
import { Condition } from '../core/condition.ts'
import { ConfigError } from '../core/errors.ts'
import { startEmbeddedCouch } from '../embedded/start.ts'
import { showDevLines } from './dev-log.ts'
import type { Go } from './dev-worker.ts'
import type { Terminal } from './terminal.ts'

const MAIN = fileURLToPath(new URL('../main.js', import.meta.url))
/** Files that a handler may be made of, or is set by. */
const SOURCE = /(\.([mc]?[jt]s|json|mustache|txt|html)|(^|\/)\.env)$/
const IGNORED = /(^|\/)(node_modules|\.git|dist|coverage)(\/|$)/
/** An editor saves several files, and some of them twice. */
const SETTLED_MS = 100

/**
 * Runs the handlers in a process of its own, on the embedded server where no other is set. When a file is saved, the next
 * process loads what there is now; if it can, the one before ends what it has begun, and the next goes on from there. If it
 * cannot, it says why, and the one before stays.
 */
export async function dev(terminal: Terminal, config: Config, flags: NodeJS.ProcessEnv): Promise<void> {
  if (config.handlers.length === 0) {
    throw new ConfigError([
      'SIDECAR_HANDLERS: expected your handlers, got none ("couchdb-sidecar init my-app" writes a project with some)',
    ])
  }
  const { signal } = terminal
  await withAcquired(async (acquire) => {
    const isEmbedded = config.couchdbUrl === undefined
    const log = await terminal.createLog('warn', showDevLines(terminal))
    const url = config.couchdbUrl ?? acquire(await startEmbeddedCouch({ log, signal })).url
    const env = {
      ...{ ...terminal.env, ...withoutUndefined(flags) },
      ...(isEmbedded && { COUCHDB_URL: url }),
    }
    const changes = new Condition()
    let saved = false
    const folders = [...new Set(config.handlers.map((path) => dirname(resolve(path)))), '.env', 'package.json']
    const watcher = watch(folders, { ignoreInitial: true, ignored: (path) => IGNORED.test(path) })
    acquire({ close: () => watcher.close() })
    watcher.on('all', (_, path) => {
      if (!SOURCE.test(path)) return
      saved = true
      changes.changed()
    })

    const checkTypes = createTypeCheck(terminal)
    let running: ChildProcess | undefined
    try {
      for (let isFirst = true; ;) {
        saved = false
        const next = startWorker(env)
        if (await hasLoaded(next)) {
          const before = running
          running = next
          await end(before)
          next.send({ isFirst, isEmbedded } satisfies Go)
          isFirst = false
          checkTypes()
          next.once('exit', () => {
            if (running !== next || signal.aborted) return
            running = undefined
            terminal.note('The handlers do not run any more: waiting until a file is saved.')
          })
        } else terminal.note(running ? 'What was loaded before goes on.' : 'Waiting until a file is saved.')
        await changes.until(() => saved, signal)
        await new Promise((settled) => setTimeout(settled, SETTLED_MS))
      }
    } catch (thrown) {
      if (!signal.aborted) throw thrown
    } finally {
      await end(running)
    }
  })
}

/** What it prints is ours. */
const startWorker = (env: NodeJS.ProcessEnv): ChildProcess =>
  fork(MAIN, ['dev-worker'], { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })

/** False if it has ended instead, and said why. */
async function hasLoaded(worker: ChildProcess): Promise<boolean> {
  const loaded = once(worker, 'message').then(() => true)
  const ended = once(worker, 'exit').then(() => false)
  return Promise.race([loaded, ended])
}

/** Lets it end what it has begun. */
async function end(worker: ChildProcess | undefined): Promise<void> {
  if (!worker || worker.exitCode !== null || worker.signalCode !== null) return
  const ended = once(worker, 'exit')
  worker.kill('SIGTERM')
  await ended
}

/** That a handler leads to a state that its machine does not declare, only types tell before a document is there. */
function createTypeCheck({ note, signal }: Terminal): () => void {
  let checking: ChildProcess | undefined
  return () => {
    const compiler = compilerIn(process.cwd())
    if (compiler === undefined || !existsSync('tsconfig.json')) return
    checking?.kill('SIGTERM')
    const args = [compiler, '--noEmit', '--pretty', 'false']
    const own = (checking = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] }))
    let text = ''
    own.stdout.on('data', (data) => (text += String(data)))
    own.once('exit', () => {
      const faults = text.match(/^\S.*$/gm) ?? [] // what follows them is indented
      if (checking === own && faults.length > 0 && !signal.aborted)
        note(['types:', ...faults.map(shortened)].join('\n  '))
    })
  }
}

const shortened = (line: string) => (line.length > 200 ? `${line.slice(0, 199)}…` : line)

function compilerIn(folder: string): string | undefined {
  try {
    return join(dirname(createRequire(join(folder, 'package.json')).resolve('typescript/package.json')), 'bin/tsc')
  } catch {
    return undefined
  }
}

const withoutUndefined = (flags: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined))
