import { setMaxListeners } from 'node:events'
import type { Couch } from './couch/client.ts'
import type { CouchError } from './couch/errors.ts'
import { patiently } from './couch/patiently.ts'
import type { DispatchTable } from './docstate/assess.ts'
import type { Counts } from './docstate/counts.ts'
import type { Engine } from './docstate/engine.ts'
import { resolveDatabases } from './roster.ts'
import { serveDatabase, type ServeOptions } from './serve-database.ts'

export interface ServeAllOptions extends Omit<ServeOptions, 'name' | 'kind' | 'table' | 'counts' | 'onEngine'> {
  readonly couch: Couch
  readonly controlDb: string
  /** Names and globs. */
  readonly databases: readonly string[]
  /** What runs in the control database, and in any other. */
  readonly tables: { readonly control: DispatchTable; readonly docstate: DispatchTable }
  /** Of the databases that are served now. */
  readonly engines: Map<string, Engine>
  /** Where its engine counts what it does. */
  readonly countsOf: (database: string) => Counts
  /** Between two looks at which databases there are. Default a minute. */
  readonly lookAgainMs?: number
}

interface Serving {
  readonly done: Promise<void>
  readonly stop: (reason: Error) => void
  /** Looks one after the other that have not found it. */
  missing: number
}

/** A database that is deleted may be made again at once; by the second look it was not. */
const MISSING_LOOKS = 2

/**
 * Serves the databases that the settings name, and those that come to match a glob for as long as they are there, until
 * the signal aborts. If one of them breaks off, which only a mistake of ours does, all end, and the mistake is thrown.
 */
export async function serveDatabases(options: ServeAllOptions, signal: AbortSignal): Promise<void> {
  const { couch, controlDb, databases, tables, engines, countsOf, clock, random, log, lookAgainMs = 60_000 } = options
  const broken = new AbortController()
  const stopping = AbortSignal.any([signal, broken.signal])
  setMaxListeners(0, stopping) // two for each database
  const serving = new Map<string, Serving>()
  const onTrouble = (error: CouchError, retryInMs: number) =>
    log.warn({ code: error.code, reason: error.message, retryInMs }, 'waiting for CouchDB to list its databases')
  const patience = { clock, random, signal: stopping, onTrouble }

  function serve(name: string): Serving {
    const kind = name === controlDb ? 'control' : 'docstate'
    const child = log.child({ db: name })
    const leaving = new AbortController()
    const onEngine = (engine: Engine) => void engines.set(name, engine)
    const until = AbortSignal.any([stopping, leaving.signal])
    const counts = countsOf(name)
    const done = serveDatabase({ ...options, name, kind, table: tables[kind], counts, log: child, onEngine }, until)
      .catch((thrown: unknown) => {
        if (!until.aborted) broken.abort(thrown)
      })
      .finally(() => {
        engines.delete(name)
        serving.delete(name)
      })
    return { done, stop: (reason) => leaving.abort(reason), missing: 0 }
  }

  function update(names: ReadonlySet<string>): void {
    for (const name of names) if (!serving.has(name)) serving.set(name, serve(name))
    for (const [name, served] of serving) {
      served.missing = names.has(name) ? 0 : served.missing + 1
      if (served.missing !== MISSING_LOOKS) continue
      log.info({ db: name }, 'the database is gone; it is no longer followed')
      served.stop(new Error(`${name} is gone`))
    }
  }

  while (!stopping.aborted) {
    try {
      update(await patiently(() => resolveDatabases(couch, [controlDb, ...databases], stopping), patience))
    } catch (thrown) {
      if (!stopping.aborted) throw thrown
    }
    await clock.sleep(lookAgainMs * (0.8 + random() * 0.4), stopping).catch(() => undefined)
  }
  await Promise.all([...serving.values()].map(({ done }) => done))
  broken.signal.throwIfAborted()
}
