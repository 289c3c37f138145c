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
/** Files that are part of a handler, or configure it. */
const SOURCE = /(\.([mc]?[jt]s|json|mustache|txt|html)|(^|\/)\.env)$/
const IGNORED = /(^|\/)(node_modules|\.git|dist|coverage)(\/|$)/
/** Wait after a save, milliseconds: an editor saves several files, some of them twice. */
const SETTLED_MS = 100

/**
 * Runs the handlers in a child process, on the embedded server if no other is set. When a file is saved, the next
 * process loads the files. If that succeeds, the previous process finishes its work, and the next one takes over. If it
 * fails, the next process prints why, and the previous one stays.
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

/** The worker prints to our terminal. */
const startWorker = (env: NodeJS.ProcessEnv): ChildProcess =>
  fork(MAIN, ['dev-worker'], { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })

/** Resolves with false if the worker has exited instead, and has printed why. */
async function hasLoaded(worker: ChildProcess): Promise<boolean> {
  const loaded = once(worker, 'message').then(() => true)
  const ended = once(worker, 'exit').then(() => false)
  return Promise.race([loaded, ended])
}

/** Stops the worker; resolves when its running work has ended. */
async function end(worker: ChildProcess | undefined): Promise<void> {
  if (!worker || worker.exitCode !== null || worker.signalCode !== null) return
  const ended = once(worker, 'exit')
  worker.kill('SIGTERM')
  await ended
}

/** Checks types after each load: before a document exists, only types reveal a next state that the machine lacks. */
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
      const faults = text.match(/^\S.*$/gm) ?? [] // details of a fault are indented
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
