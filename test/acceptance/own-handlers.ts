/** Handlers as a user writes them: a module in a folder of its own, where the package is installed. */
import { appendFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { freshDb } from '../support/couchdb.ts'
import { root } from './build.ts'
import { createControl } from './control.ts'
import { startProcess } from './process.ts'
import type { Settings, Sidecar } from './sidecar.ts'
import { startSidecar } from './start.ts'
import { lookAway, settingsOf } from './registration.ts'

/** A project of somebody who has installed the sidecar. Resolves with the path of its module: JavaScript, as loading TypeScript takes seconds. */
export async function writeModule(source: string, file = 'handlers.mjs'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'handlers-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await mkdir(join(folder, 'node_modules'))
  await symlink(root, join(folder, 'node_modules', 'couchdb-sidecar'))
  await writeFile(join(folder, file), source)
  return join(folder, file)
}

/**
 * A project whose handlers call `note(...words)`, which writes a line, and `noted`, which reads them: it outlives a worker
 * that is killed.
 */
export async function writeNoting(source: string) {
  const module = await writeModule(`
    import { appendFileSync } from 'node:fs'
    const note = (...words) => appendFileSync(new URL('notes', import.meta.url), words.join(' ') + '\\n')
    ${source}`)
  const notes = new URL('notes', `file://${module}`)
  await appendFile(notes, '')
  const noted = async () =>
    (await readFile(notes, 'utf8'))
      .split('\n')
      .filter(Boolean)
      .map((line) => line.split(' '))
  return { module, noted }
}

/** Three workers for a new database beside the control database, each with its own settings besides. */
export async function startThree(module: string, ...others: readonly Settings[]) {
  const settings = { SIDECAR_LEASE: '8s' }
  const { sidecar, ...stage } = await startProcessWith(module, { ...settings, SIDECAR_NAME: 'a' })
  const more = ['b', 'c'].map((name, i) => startProcess({ ...stage.settings, SIDECAR_NAME: name, ...others[i] }))
  return { ...stage, workers: [sidecar, ...(await Promise.all(more))] as const }
}

/** A sidecar for a new database beside the control database. */
export const startWith = (module: string, more: Settings = {}) => openWith(startSidecar, module, more)

/** As `startWith`, with a sidecar that can be killed. */
export const startProcessWith = (module: string, more: Settings = {}) => openWith(startProcess, module, more)

async function openWith<S extends Sidecar>(start: (settings: Settings) => Promise<S>, module: string, more: Settings) {
  const [control, orders] = [await createControl(), await freshDb('orders')]
  await lookAway(control)
  const settings = settingsOf(control, { SIDECAR_DATABASES: orders.name, SIDECAR_HANDLERS: module, ...more })
  return { control, orders, settings, sidecar: await start(settings) }
}
