/** Three sidecars, each behind a faulty proxy of its own, that can be killed, paused, and started with a wrong clock. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { launchSidecar, type Settings, type SidecarProcess } from '../acceptance/process.ts'
import { startFaultyProxy, type FaultyProxy } from '../support/faulty-proxy.ts'
import { handlersModule, shiftedClock } from './handlers.ts'

export interface Worker {
  readonly name: string
  readonly proxy: FaultyProxy
  readonly pid: number
  kill(): Promise<void>
  start(more?: Settings): Promise<void>
  stop(): Promise<number | null>
}

export interface TrioOptions {
  readonly folder: string
  readonly couchUrl: string
  readonly recorderUrl: string
  /** Name or glob. */
  readonly databases: string
}

export const LEASE_MS = 2000
const HOUR_MS = 3_600_000

export async function startWorker(name: string, options: TrioOptions): Promise<Worker> {
  const { folder, couchUrl, recorderUrl, databases } = options
  const proxy = await startFaultyProxy(couchUrl)
  const module = join(folder, `${name}.mjs`)
  await writeFile(module, handlersModule(recorderUrl, name))
  const settings = {
    ...{ COUCHDB_URL: proxy.url, SMTP_URL: 'smtp://127.0.0.1:1', SIDECAR_NAME: name },
    ...{ SIDECAR_CONTROL_DB: 'trio-control', SIDECAR_DATABASES: databases, SIDECAR_HANDLERS: module },
    ...{ SIDECAR_GLOBAL_CHANGES_DB: 'trio-events' },
    ...{ SIDECAR_LEASE: `${LEASE_MS}ms`, SIDECAR_LOG_LEVEL: process.env.CHAOS_LOG_LEVEL ?? 'info' },
  }
  let running: SidecarProcess = await launchSidecar(settings)
  return {
    name,
    proxy,
    get pid() {
      return running.pid
    },
    kill: () => running.kill(),
    async start(more = {}) {
      running = await launchSidecar({ ...settings, ...more })
    },
    stop: () => running.stop(),
  }
}

/** Settings of a sidecar whose clock is an hour fast, or slow. */
export async function wrongClock(folder: string, ahead: boolean): Promise<Settings> {
  const file = join(folder, `clock-${ahead}.mjs`)
  await writeFile(file, shiftedClock(ahead ? HOUR_MS : -HOUR_MS))
  return { NODE_OPTIONS: `--import ${file}` }
}
