import pino from 'pino'
import { expect, test } from 'vitest'
import { systemClock } from '../../sidecar/core/clock.ts'
import { createMemory } from '../../sidecar/core/memory.ts'
import { Flight } from '../../sidecar/docstate/flight.ts'
import type { FlightEnd } from '../../sidecar/docstate/fly.ts'
import { handlerDefaults } from '../../sidecar/docstate/handler-options.ts'
import { createEvents } from '../../sidecar/events/channels.ts'
import { createLife } from '../../sidecar/docstate/life.ts'
import { createRecover } from '../../sidecar/docstate/recover.ts'
import type { Stored } from '../../sidecar/docstate/store.ts'
import type { Registration } from '../../sidecar/docstate/types.ts'

/** Recovers an entry of a dead worker, where the writes and flights of this worker end so; what it logs. */
async function recover({
  end,
  stored,
  ...options
}: { end?: FlightEnd; stored?: Stored } & Partial<Registration['options']>) {
  const lines: { msg: string; worker: string }[] = []
  const log = pino({ base: null }, { write: (line) => void lines.push(JSON.parse(line) as (typeof lines)[0]) })
  const handler = () => Promise.resolve()
  const registration: Registration = {
    ...{ type: 'order', state: 'paid', mode: 'unsafe', handler },
    options: { ...handlerDefaults, onLost: 'retry', ...options },
  }
  const claim = { worker: 'dead', token: 'its own', at: '2020-01-01T00:00:00.000Z', lease_ms: 1000 }
  const doc = { _id: 'o', _rev: '1-a', type: 'order', state: 'paid', docstate: { state: 'paid', claim } }
  await createRecover({
    store: () => Promise.resolve(stored ?? { kind: 'lost' }),
    laneOf: (registration) => ({
      registration,
      fly: (flight) => {
        flight.saved = end === 'settled'
        return Promise.resolve(end ?? 'not-ours')
      },
      share: createMemory(1000).share(),
    }),
    clock: systemClock,
    life: createLife(createEvents({ log }), 'orders'),
    log,
  })(new Flight(registration, doc, 'ours'))
  return lines.map(({ msg, worker }) => `${worker}: ${msg}`)
}

test.each(['not-ours', 'not-taken', 'given-up'] as const)(
  'what was not won is not said to be taken over (%s)',
  async (end) => {
    expect(await recover({ end })).toEqual([])
  },
)

test('what was won is', async () => {
  expect(await recover({ end: 'settled' })).toEqual(['dead: taken over from a lost worker'])
})

test.each([
  [{ onLost: 'park' }, 'dead: parked: nobody knows whether its effect happened'],
  [{ attempts: 1 }, 'dead: ended in error: its workers were lost too often'],
] as const)('an end that %o brings is told by whoever wrote it', async (options, line) => {
  expect(await recover({ ...options, stored: { kind: 'stored' } })).toEqual([line])
  expect(await recover({ ...options, stored: { kind: 'lost' } })).toEqual([])
})
