import { mkdir, writeFile } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'
import { join } from 'node:path'
import type { Couch } from '../sidecar/couch/client.ts'
import { detectEngine } from '../sidecar/deploy/deploy.ts'
import { answerOf } from '../test/support/answers.ts'

/** A figure with its target. */
export interface Line {
  readonly what: string
  readonly figure: string
  /** Empty for figures that serve only as a comparison. */
  readonly target?: string
  readonly met?: boolean
}

export interface Report {
  readonly at: string
  readonly machine: string
  readonly node: string
  readonly couchdb: string
  readonly lines: readonly Line[]
}

export async function createReport(couch: Couch, lines: readonly Line[]): Promise<Report> {
  const { version } = await answerOf<{ version: string }>(couch, {})
  const engine = await detectEngine(couch)
  const [cpu] = cpus()
  return {
    at: new Date().toISOString(),
    machine: `${cpus().length} × ${cpu?.model.trim() ?? 'unknown processor'}, ${Math.round(totalmem() / 2 ** 30)} GB, with CouchDB on it`,
    node: process.version,
    couchdb: `${version} (${engine.name})`,
    lines,
  }
}

export function formatReport({ at, machine, node, couchdb, lines }: Report): string {
  const rows = lines.map(({ what, figure, target = '', met }) => {
    return `| ${what} | ${figure} | ${target}${met === undefined ? '' : met ? ' ✓' : ' — missed'} |`
  })
  return [
    `# Bench of ${at.slice(0, 10)}`,
    '',
    `${machine}; Node ${node}; CouchDB ${couchdb}. Times here are ratios to what the same server did in the same run.`,
    '',
    '| what | figure | target |',
    '| --- | --- | --- |',
    ...rows,
    '',
  ].join('\n')
}

/** Saves the report: one file for each run, in two formats. */
export async function saveReport(report: Report, folder: string): Promise<string> {
  await mkdir(folder, { recursive: true })
  const name = `${report.at.slice(0, 16).replace(/[:T]/g, '-')}`
  await writeFile(join(folder, `${name}.json`), `${JSON.stringify(report, undefined, 2)}\n`)
  await writeFile(join(folder, `${name}.md`), formatReport(report))
  return join(folder, `${name}.md`)
}
