import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../config.ts'
import type { Clock } from '../core/clock.ts'
import type { LoadedHandlers } from '../docstate/handlers.ts'
import { loadTemplates } from '../mail/templates.ts'
import { runSidecar } from '../sidecar.ts'
import { withWebhooks } from '../webhooks/bind-webhooks.ts'
import type { WorkerConnection } from './worker-connection.ts'

/** A sidecar in this process that can crash. */
export interface Worker {
  readonly connection: WorkerConnection
  /** Simulates `kill -9` for all peers. Resolves when nothing of the worker runs, except what handlers left running. */
  crash(): Promise<void>
}

export interface WorkerOptions {
  readonly connection: WorkerConnection
  readonly config: Config
  readonly handlers: LoadedHandlers
  readonly clock: Clock
  readonly log: Logger
  /** Wraps the handlers after their webhooks became calls. */
  readonly watch: (bound: LoadedHandlers) => LoadedHandlers
}

const { version } = createRequire(import.meta.url)('couchdb-sidecar/package.json') as { version: string }
const UP_MS = 60_000
const POLL_MS = 20

/** Resolves when the worker follows its databases. */
export async function startWorker({ connection, config, handlers, clock, log, watch }: WorkerOptions): Promise<Worker> {
  const stopping = new AbortController()
  const templates = loadTemplates()
  let listens = (_url: string) => {}
  const listening = new Promise<string>((resolve) => (listens = resolve))
  const running = withWebhooks(handlers, config, version, (bound) =>
    runSidecar(
      {
        ...{ version, config, handlers: watch(bound), templates, clock, log, random: Math.random },
        onListening: ({ sidecar }) => listens(sidecar),
      },
      stopping.signal,
    ),
  )
  const crash = async () => {
    await connection.cut()
    stopping.abort(new Error('the worker has crashed'))
    await running.catch(() => undefined)
  }
  try {
    const url = await Promise.race([listening, running.then(() => Promise.reject(new Error('the worker has ended')))])
    let answer = ''
    await poll(
      async () => {
        const response = await fetch(`${url}/_up`)
        answer = await response.text()
        return response.ok || undefined
      },
      () => `expected the worker to be up within ${UP_MS} ms, got from /_up: ${answer}`,
      UP_MS,
    )
    return { connection, crash }
  } catch (thrown) {
    await crash()
    throw thrown
  }
}

/** Calls `look` until it returns a value. Throws the message after `within` milliseconds. */
export async function poll<T>(look: () => Promise<T | undefined>, message: () => string, within: number): Promise<T> {
  for (const began = performance.now(); ; await sleep(POLL_MS)) {
    const found = await look()
    if (found !== undefined) return found
    if (performance.now() - began > within) throw new Error(message())
  }
}

/** Counts running handlers. */
export function createWatched() {
  let running = 0
  const watching = <A extends unknown[], R>(handler: (...args: A) => Promise<R>) =>
    async function watched(...args: A): Promise<R> {
      running += 1
      try {
        return await handler(...args)
      } finally {
        running -= 1
      }
    }
  const all = <H extends { readonly handler: (...args: never[]) => Promise<unknown> }>(handled: readonly H[]): H[] =>
    handled.map((one) => ({ ...one, handler: watching(one.handler) }))
  return {
    get running() {
      return running
    },
    watch: (handlers: LoadedHandlers): LoadedHandlers => ({
      ...handlers,
      registrations: all(handlers.registrations),
      schedules: all(handlers.schedules),
      deletions: all(handlers.deletions),
    }),
  }
}
