/** Three sidecars, each behind its own faulty proxy. A test can kill, pause, and start them with a wrong clock. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { launchProcess, type SidecarProcess } from '../acceptance/process.ts'
import type { Settings } from '../acceptance/sidecar.ts'
import { startFaultyProxy, type FaultyProxy } from '../support/faulty-proxy.ts'
import { handlersModule, shiftedClock } from './handlers.ts'
import type { World } from './mishaps.ts'

export interface Worker {
  readonly name: string
  readonly proxy: FaultyProxy
  readonly pid: number
  readonly isAlive: boolean
  kill(): Promise<void>
  start(more?: Settings): Promise<void>
  stop(): Promise<number | null>
}

export const CONTROL_DB = 'trio-control'
export const LEASE_MS = 2000
const HOUR_MS = 3_600_000

export async function startWorker(name: string, couchUrl: string, more: Settings): Promise<Worker> {
  const proxy = await startFaultyProxy(couchUrl)
  const settings = {
    ...{ COUCHDB_URL: proxy.url, SMTP_URL: 'smtp://127.0.0.1:1', SIDECAR_NAME: name },
    ...{ SIDECAR_CONTROL_DB: CONTROL_DB, SIDECAR_GLOBAL_CHANGES_DB: 'trio-events' },
    ...{ SIDECAR_LEASE: `${LEASE_MS}ms`, SIDECAR_LOG_LEVEL: process.env.CHAOS_LOG_LEVEL ?? 'info' },
    ...more,
  }
  let running: SidecarProcess = await launchProcess(settings)
  return {
    name,
    proxy,
    get pid() {
      return running.pid
    },
    get isAlive() {
      return running.isAlive
    },
    kill: () => running.kill(),
    async start(more = {}) {
      running = await launchProcess({ ...settings, ...more })
    },
    stop: () => running.stop(),
  }
}

/** Starts three sidecars with the chaos handlers, on the servers of this world in turn. The end of the test kills them. */
export async function startTrio({ nodes, folder }: World, recorderUrl: string, more: Settings): Promise<Worker[]> {
  const workers = await Promise.all(
    ['a', 'b', 'c'].map(async (name, place) => {
      const module = join(folder, `${name}.mjs`)
      await writeFile(module, handlersModule(recorderUrl, name))
      return startWorker(name, nodes[place % nodes.length]!.url, { SIDECAR_HANDLERS: module, ...more })
    }),
  )
  onTestFinished(async () => void (await Promise.all(workers.map((worker) => worker.kill()))))
  return workers
}

/** Settings of a sidecar whose clock is an hour fast or slow. */
export async function wrongClock(folder: string, ahead: boolean): Promise<Settings> {
  const file = join(folder, `clock-${ahead}.mjs`)
  await writeFile(file, shiftedClock(ahead ? HOUR_MS : -HOUR_MS))
  return { NODE_OPTIONS: `--import ${file}` }
}
