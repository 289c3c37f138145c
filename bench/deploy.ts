/**
 * The slowest query during a change of a view over many documents: by a deploy, and by a plain write, in one run. The
 * benchmark queries the view continuously.
 */
import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Couch } from '../sidecar/couch/client.ts'
import type { Database } from '../sidecar/couch/database.ts'
import { compileDdocs } from '../sidecar/deploy/compile.ts'
import { deployDdocs } from '../sidecar/deploy/deploy.ts'
import { dropDatabase, fillDatabase } from './database.ts'
import { quantile } from './figures.ts'
import type { Line } from './report.ts'

interface Change {
  /** Milliseconds. */
  readonly median: number
  readonly slowest: number
  /** The time until the changed view answers. */
  readonly seconds: number
}

export async function measureDeploy(couch: Couch, count: number): Promise<Line[]> {
  const database = await fillDatabase(couch, count, {})
  const folder = await mkdtemp(join(tmpdir(), 'bench-ddocs-'))
  try {
    await writeView(folder, 1)
    const deploy = () => deployDdocs({ couch, deployments: [{ database: database.name, templates: [{ folder }] }] })
    await deploy()
    await ask(database)

    await writeView(folder, 2)
    const staged = await change(database, async () => void (await deploy()))
    await writeView(folder, 3)
    const [ddoc] = await compileDdocs({ folder })
    const { _rev } = await database.get('_design/bench')
    const plain = await change(database, async () => {
      await database.put({ ...ddoc!, _rev })
      await ask(database)
    })
    const figure = ({ median, slowest, seconds }: Change) =>
      `slowest ${Math.round(slowest)} ms (median ${median.toFixed(1)} ms, changed after ${seconds.toFixed(1)} s)`
    return [
      { what: `query while a view over ${count} documents changes: written as it is`, figure: figure(plain) },
      { what: 'query while it changes: deployed', figure: figure(staged) },
      {
        what: 'slowest query, deployed / written as it is',
        figure: (staged.slowest / plain.slowest).toFixed(3),
        target: '≤ 0.1',
        met: staged.slowest / plain.slowest <= 0.1,
      },
    ]
  } finally {
    await rm(folder, { recursive: true })
    await dropDatabase(couch, database)
  }
}

/** One client queries the view during the change. */
async function change(database: Database, work: () => Promise<void>): Promise<Change> {
  const times: number[] = []
  let done = false
  const polling = (async () => {
    while (!done) {
      const began = performance.now()
      await ask(database)
      times.push(performance.now() - began)
    }
  })()
  const began = performance.now()
  try {
    await work()
  } finally {
    done = true
  }
  const seconds = (performance.now() - began) / 1000
  await polling
  return { median: quantile(times, 0.5), slowest: Math.max(...times), seconds }
}

/** The index may take longer than a request timeout. */
async function ask(database: Database): Promise<void> {
  await database.view('bench', 'by_owner', z.unknown(), { limit: 10 }, { timeoutMs: 3_600_000 })
}

async function writeView(folder: string, version: number): Promise<void> {
  const view = join(folder, 'bench', 'views', 'by_owner')
  await mkdir(view, { recursive: true })
  await writeFile(join(view, 'map.js'), `export default (doc) => emit([doc.owner, ${version}], null)`)
}
