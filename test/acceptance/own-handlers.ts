/** Handlers as a user writes them: a module in a folder of its own, where the package is installed. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
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
