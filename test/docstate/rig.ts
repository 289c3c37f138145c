/** Starts an engine on the test's database and stops it with the test. */
import pino from 'pino'
import { onTestFinished } from 'vitest'
import type { Machines } from '../../ddocs/machine.ts'
import { systemClock } from '../../sidecar/core/clock.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import { createControl, type Control } from '../../sidecar/docstate/control.ts'
import { Lease } from '../../sidecar/docstate/claims/lease.ts'
import { createEngine, type Engine, type EngineOptions } from '../../sidecar/docstate/engine.ts'
import { createEvents } from '../../sidecar/events/channels.ts'
import type { MailBinding } from '../../sidecar/docstate/mail.ts'
import { startRegistry } from '../workers/registries.ts'
import { installDocstate } from './install.ts'

/** The handlers of these tests send no mail. See test/mail for mail. */
const noMail: MailBinding = {
  forEntry: ({ done }) => ({ done, send: () => Promise.reject(new Error('no mail in this test')) }),
}

export interface Rig {
  readonly engine: Engine
  readonly control: Control
  /** Stops the engine and waits for its end. */
  stop(): Promise<void>
}

export interface RigOptions extends Partial<EngineOptions> {
  readonly machines?: Machines
  /** Default 30 s. */
  readonly leaseMs?: number
}

/** Installs the design document, unless the database has one, and starts an engine with these handlers. */
export async function startRig(
  database: Database,
  register: (control: Control) => void,
  { leaseMs = 30_000, ...options }: RigOptions = {},
): Promise<Rig> {
  const control = createControl<Machines>(options.machines ?? {})
  register(control)
  await installDocstate(database, control.machines)
  const log = pino({ level: process.env.SIDECAR_LOG_LEVEL ?? 'silent' })
  const engine = createEngine({
    events: createEvents({ log }),
    workers: startRegistry(database), // inactive until a handler uses it
    database,
    table: control,
    mailer: noMail,
    worker: 'rig',
    clock: systemClock,
    random: Math.random,
    log,
    lease: new Lease({ leaseMs, clock: options.clock ?? systemClock, log }),
    heartbeatMs: 2000, // long enough that a busy machine does not count as a dead connection
    ...options,
  })
  const stopping = new AbortController()
  const running = engine.run(stopping.signal)
  const stop = async () => {
    stopping.abort(new Error('the test is over'))
    await running
  }
  onTestFinished(stop)
  return { engine, control, stop }
}

export const stateOf = async (database: Database, id: string): Promise<unknown> => (await database.get(id)).state

export const docstateIn = (doc: StoredDoc | undefined) => doc?.docstate as Record<string, unknown> | undefined

/** A promise that resolves when the test opens it. */
export function createLatch(): { readonly opened: Promise<void>; open(): void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open: () => open() }
}
