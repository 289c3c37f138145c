import pino from 'pino'
import { onTestFinished } from 'vitest'
import { systemClock } from '../../sidecar/core/clock.ts'
import type { Database } from '../../sidecar/couch/database.ts'
import { createEvents, type Events } from '../../sidecar/events/channels.ts'
import { createRegistry, type Registry } from '../../sidecar/workers/registry.ts'

/** A registry that closes with the test. `write` receives its warnings, one line each. */
export function startRegistry(
  database: Database,
  write: (line: string) => void = () => undefined,
  events?: Events,
): Registry {
  const log = pino({ level: 'warn' }, { write })
  const registry = createRegistry({
    database,
    events: events ?? createEvents({ log }),
    clock: systemClock,
    random: Math.random,
    log,
  })
  onTestFinished(() => registry.close())
  return registry
}

export const idsIn = (registry: Registry, role = 'mill') => registry.members(role)?.members.map(({ id }) => id)
