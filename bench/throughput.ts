/**
 * The rate of handled documents and the cost of each, beside the best rate of the same server and beside a plain loop.
 */
import type { Machines } from '../ddocs/machine.ts'
import type { Couch } from '../sidecar/couch/client.ts'
import type { Database } from '../sidecar/couch/database.ts'
import { historyDatabases } from '../sidecar/history/history-databases.ts'
import { runLimit, runLoop } from './baselines.ts'
import { dropDatabase, orderMachines } from './database.ts'
import { runEngine } from './engine.ts'
import { median } from './figures.ts'
import type { Line } from './report.ts'
import { difference, loopbackBytes, statsOf, usageIfOurs } from './usage.ts'
import type { Version } from './versions.ts'

export interface ThroughputOptions {
  readonly couch: Couch
  readonly url: string
  /** The process id of the server, if the benchmark started it. */
  readonly serverPid: number | undefined
  readonly count: number
  readonly rounds: number
  readonly versions: readonly Version[]
  /** With state machines, so that CouchDB runs `validate_doc_update` for every write of every client. */
  readonly guarded: boolean
  readonly progress: (text: string) => void
}

/** The cost of one document. */
interface Cost {
  readonly perSecond: number
  /** Processor milliseconds of CouchDB, and of the process under test. */
  readonly serverMs: number
  readonly ownMs: number
  readonly requests: number
  readonly bytes: number
}

const MODES = ['safe', 'unsafe'] as const
const WRITES = { safe: 1, unsafe: 2 } as const
const GOALS = {
  plain: { safe: 0.95, unsafe: 0.9, loop: 8 },
  guarded: { safe: 0.95, unsafe: 0.9, loop: undefined },
} as const
/** The plain loop is slow, and its rate does not depend on the number of documents. */
const LOOP_PART = 10
/** Processor time of CouchDB for an unsafe document, relative to the lower bound. */
const SERVER_GOAL = 1.15
/** The share of its rate that a handler with a key and a limit may lose. */
const OPTIONS_GOAL = 0.8

export async function measureThroughput(options: ThroughputOptions): Promise<Line[]> {
  const { couch, url, serverPid, count, rounds, versions, guarded, progress } = options
  const costs = new Map<string, Cost[]>()

  async function time(
    name: string,
    version: Version,
    machines: Machines,
    work: (database: Database) => Promise<{ seconds: number; cpuSeconds?: number } | void>,
    docs = count,
  ): Promise<void> {
    const database = await version.fillDatabase(couch, docs, machines)
    const before = [await statsOf(couch), await usageIfOurs(serverPid), await loopbackBytes()] as const
    const [began, cpu] = [performance.now(), process.cpuUsage()]
    const measured = await work(database)
    const seconds = measured?.seconds ?? (performance.now() - began) / 1000
    const { user, system } = process.cpuUsage(cpu)
    const ownSeconds = measured ? (measured.cpuSeconds ?? NaN) : (user + system) / 1e6
    const [bytes, usage, stats] = [await loopbackBytes(), await usageIfOurs(serverPid), await statsOf(couch)]
    const cost = {
      perSecond: docs / seconds,
      serverMs: ((usage.cpuSeconds - before[1].cpuSeconds) / docs) * 1000,
      ownMs: (ownSeconds / docs) * 1000,
      requests: difference(stats, before[0]).requests / docs,
      bytes: (bytes - before[2]) / docs,
    }
    costs.set(name, [...(costs.get(name) ?? []), cost])
    progress(`${guarded ? 'guarded' : 'plain'}: ${name}: ${costFigure(cost)}`)
    await dropDatabase(couch, database)
  }

  const [own] = versions
  for (let round = 0; round < rounds; round++) {
    for (const mode of MODES) {
      const machines = guarded ? orderMachines(mode) : {}
      await time(`limit of ${mode}`, own!, machines, (db) => runLimit(couch, db, WRITES[mode]))
      const inTurn = round % 2 === 0 ? versions : versions.toReversed()
      for (const version of inTurn)
        await time(nameOf(mode, version), version, machines, ({ name }) =>
          runEngine(version.folder, { url, name, mode, count, machines }),
        )
      if (!guarded && mode === 'safe')
        await time(WITH_HISTORY, own!, machines, async ({ name }) => {
          const history = `${name}-history`
          const result = await runEngine(own!.folder, { url, name, mode, count, machines, history })
          for (const week of await historyDatabases(couch, history, NEVER)) await couch.db(week).drop()
          return result
        })
      if (!guarded)
        await time(withOptions(mode), own!, machines, ({ name }) =>
          runEngine(own!.folder, { url, name, mode, count, machines, hasOptions: true }),
        )
    }
    await time('loop', own!, guarded ? orderMachines('unsafe') : {}, (db) => runLoop(couch, url, db), count / LOOP_PART)
  }

  const of = (name: string): Cost => medianOf(costs.get(name)!)
  const where = guarded ? 'with a machine (CouchDB checks every write)' : 'without a machine'
  const line = (name: string): Line => ({ what: `${where}: ${name}`, figure: costFigure(of(name)) })
  const goals = guarded ? GOALS.guarded : GOALS.plain
  const ratio = (what: string, value: number, goal: number | undefined, atMost = false): Line => ({
    what: `${where}: ${what}`,
    figure: value.toFixed(2),
    ...(goal && { target: `${atMost ? '≤' : '≥'} ${goal}`, met: atMost ? value <= goal : value >= goal }),
  })
  const lines: Line[] = [{ what: `${count} documents ${where}: plain nano loop`, figure: costFigure(of('loop')) }]
  for (const mode of MODES) {
    lines.push({ what: `${where}: limit, ${WRITES[mode]} write(s)`, figure: costFigure(of(`limit of ${mode}`)) })
    for (const version of versions) {
      const name = nameOf(mode, version)
      const [engine, limit] = [of(name), of(`limit of ${mode}`)]
      lines.push(line(name), ratio(`${name} / limit`, engine.perSecond / limit.perSecond, goals[mode]))
      if (!guarded && version === own) {
        lines.push(line(withOptions(mode)))
        const loss = of(withOptions(mode)).perSecond / engine.perSecond
        lines.push(ratio(`${withOptions(mode)} / without`, loss, OPTIONS_GOAL))
        if (mode === 'safe') {
          lines.push(line(WITH_HISTORY))
          lines.push(ratio(`${WITH_HISTORY} / without`, of(WITH_HISTORY).perSecond / engine.perSecond, undefined))
        }
      }
      if (mode === 'unsafe') {
        const server = engine.serverMs / limit.serverMs
        lines.push(ratio(`processor of CouchDB, ${name} / limit`, server, SERVER_GOAL, true))
        lines.push(ratio(`${name} / loop`, engine.perSecond / of('loop').perSecond, goals.loop))
      }
    }
  }
  lines.push(
    ratio('limit / loop (no handler can exceed it)', of('limit of unsafe').perSecond / of('loop').perSecond, undefined),
  )
  return lines
}

const NEVER = new AbortController().signal
const WITH_HISTORY = 'safe handler with a history'
const withOptions = (mode: string) => `${mode} handler with a key and a limit`

const nameOf = (mode: string, { name }: Version) => `${mode} handler${name && ` of ${name}`}`

const medianOf = (costs: readonly Cost[]): Cost => {
  const of = (field: keyof Cost) => median(costs.map((cost) => cost[field]))
  const [perSecond, serverMs, ownMs, requests, bytes] = [
    of('perSecond'),
    of('serverMs'),
    of('ownMs'),
    of('requests'),
    of('bytes'),
  ]
  return { perSecond, serverMs, ownMs, requests, bytes }
}

const costFigure = ({ perSecond, serverMs, ownMs, requests, bytes }: Cost): string => {
  const own = Number.isNaN(ownMs) ? '' : `, ${ownMs.toFixed(2)} ms of its client’s`
  return (
    `${Math.round(perSecond)} documents/s; for each ${serverMs.toFixed(2)} ms of CouchDB’s processor${own}, ` +
    `${requests.toFixed(3)} requests, ${Math.round(bytes)} bytes`
  )
}
