import { setMaxListeners } from 'node:events'
import type { Couch } from './couch/client.ts'
import type { CouchError } from './couch/errors.ts'
import { patiently } from './couch/patiently.ts'
import type { DispatchTable } from './docstate/assess.ts'
import type { Engine } from './docstate/engine.ts'
import { resolveDatabases } from './roster.ts'
import { serveDatabase, type ServeOptions } from './serve-database.ts'

export interface ServeAllOptions extends Omit<ServeOptions, 'name' | 'kind' | 'table' | 'onEngine'> {
  readonly couch: Couch
  readonly controlDb: string
  /** Names and globs. */
  readonly databases: readonly string[]
  /** What runs in the control database, and in any other. */
  readonly tables: { readonly control: DispatchTable; readonly docstate: DispatchTable }
  /** Filled as databases are found. */
  readonly engines: Map<string, Engine>
}

const LOOK_AGAIN_MS = 60_000

/**
 * Serves the databases that the settings name, and those that come to match a glob, until the signal aborts. If one
 * of them breaks off, which only a mistake of ours does, all end, and the mistake is thrown.
 */
export async function serveDatabases(options: ServeAllOptions, signal: AbortSignal): Promise<void> {
  const { couch, controlDb, databases, tables, engines, clock, random, log } = options
  const stopping = new AbortController()
  setMaxListeners(0, stopping.signal) // two for each database
  const stop = () => stopping.abort(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  const serving = new Map<string, Promise<void>>()
  let broken: { thrown: unknown } | undefined
  const onTrouble = (error: CouchError, retryInMs: number) =>
    log.warn({ code: error.code, reason: error.message, retryInMs }, 'waiting for CouchDB to list its databases')
  const patience = { clock, random, signal: stopping.signal, onTrouble }

  function serve(name: string): Promise<void> {
    const kind = name === controlDb ? 'control' : 'docstate'
    const child = log.child({ db: name })
    const onEngine = (engine: Engine) => void engines.set(name, engine)
    return serveDatabase({ ...options, name, kind, table: tables[kind], log: child, onEngine }, stopping.signal).catch(
      (thrown: unknown) => {
        if (!stopping.signal.aborted) broken = { thrown }
        stop()
      },
    )
  }

  while (!stopping.signal.aborted) {
    try {
      const names = await patiently(() => resolveDatabases(couch, [controlDb, ...databases], stopping.signal), patience)
      for (const name of names) if (!serving.has(name)) serving.set(name, serve(name))
    } catch (thrown) {
      if (!stopping.signal.aborted) throw thrown
    }
    await clock.sleep(LOOK_AGAIN_MS * (0.8 + random() * 0.4), stopping.signal).catch(() => undefined)
  }
  await Promise.all(serving.values())
  signal.removeEventListener('abort', stop)
  if (broken) throw broken.thrown
}
