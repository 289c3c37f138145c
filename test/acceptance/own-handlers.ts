/** Handlers as a user writes them: a module in its own folder, in which the package is installed. */
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

/** Code that ends the handler's process at once. SIGKILL from inside does not reach PID 1 of a container. */
export const DIE = "process.pid === 1 ? process.abort() : process.kill(process.pid, 'SIGKILL')"

/** A user's project. Resolves with the path of its module: JavaScript, as loading TypeScript takes seconds. */
export async function writeModule(source: string, file = 'handlers.mjs'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'handlers-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await mkdir(join(folder, 'node_modules'))
  await symlink(root, join(folder, 'node_modules', 'couchdb-sidecar'))
  await writeFile(join(folder, file), source)
  return join(folder, file)
}

/**
 * A project whose handlers call `note(...words)` to write a line; `noted` reads the lines. They outlive a
 * killed worker.
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

const NAMES = ['a', 'b', 'c']

/** Three workers for a new database beside the control database. Each worker can have additional settings. */
export async function startThree(module: string, ...others: readonly Settings[]) {
  const settings = { SIDECAR_LEASE: '8s' }
  const { sidecar, ...stage } = await startProcessWith(module, { ...settings, SIDECAR_NAME: NAMES[0]! })
  const more = NAMES.slice(1).map((name, i) => startProcess({ ...stage.settings, SIDECAR_NAME: name, ...others[i] }))
  const workers = [sidecar, ...(await Promise.all(more))] as const
  /** The worker with this SIDECAR_NAME. */
  const named = (name: string) => workers[NAMES.indexOf(name)]!
  return { ...stage, workers, named }
}

/** A sidecar for a new database beside the control database. */
export const startWith = (module: string, more: Settings = {}) => openWith(startSidecar, module, more)

/** Like `startWith`, with a sidecar that can be killed. */
export const startProcessWith = (module: string, more: Settings = {}) => openWith(startProcess, module, more)

async function openWith<S extends Sidecar>(start: (settings: Settings) => Promise<S>, module: string, more: Settings) {
  const [control, orders] = [await createControl(), await freshDb('orders')]
  await lookAway(control)
  const settings = settingsOf(control, { SIDECAR_DATABASES: orders.name, SIDECAR_HANDLERS: module, ...more })
  return { control, orders, settings, sidecar: await start(settings) }
}
