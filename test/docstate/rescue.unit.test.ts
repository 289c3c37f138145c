import pino from 'pino'
import { expect, test } from 'vitest'
import { systemClock } from '../../sidecar/core/clock.ts'
import type { Doc } from '../../sidecar/couch/documents.ts'
import { createTelemetry } from '../../sidecar/docstate/telemetry.ts'
import { Attempt } from '../../sidecar/docstate/attempt.ts'
import { handlerDefaults } from '../../sidecar/docstate/handler-options.ts'
import { createRescue } from '../../sidecar/docstate/rescue.ts'
import type { WriteResult } from '../../sidecar/docstate/write-doc.ts'
import type { Docstate, Registration } from '../../sidecar/docstate/types.ts'
import { createEvents } from '../../sidecar/events/channels.ts'

interface Lost {
  /** The result of the write. */
  readonly stored?: WriteResult['kind']
  readonly docstate?: Partial<Docstate>
  readonly begun?: boolean
  readonly options?: Partial<Registration['options']>
}

/** Rescues an entry of a dead worker. Returns the log lines, the counters and the written document. */
async function recover({ stored = 'stored', docstate, begun = true, options }: Lost) {
  const lines: { msg: string; worker: string }[] = []
  const log = pino({ base: null }, { write: (line) => void lines.push(JSON.parse(line) as (typeof lines)[0]) })
  const handler = () => Promise.resolve()
  const registration: Registration = {
    ...{ type: 'order', state: 'paid', mode: 'unsafe', handler },
    options: { ...handlerDefaults, onLost: 'retry', ...options },
  }
  const claim = { worker: 'dead', token: 'its own', at: '2020-01-01T00:00:00.000Z', lease_ms: 1000, begun }
  const doc = { _id: 'o', _rev: '1-a', type: 'order', state: 'paid', docstate: { state: 'paid', claim, ...docstate } }
  const attempt = new Attempt(registration, doc, 'ours')
  const telemetry = createTelemetry(createEvents({ log }), 'orders', () => 0)
  let written: Doc | undefined
  await createRescue({
    writeDoc(_, doc) {
      if (stored === 'stored') written = attempt.doc = { ...doc, _rev: '2-b' }
      return Promise.resolve({ kind: stored } as WriteResult)
    },
    ...{ clock: systemClock, random: Math.random, telemetry, log },
  })(attempt)
  return {
    received: lines.map(({ msg, worker }) => `${worker}: ${msg}`),
    written,
    counts: telemetry.counts.of(registration),
  }
}

test.each<[string, Lost, object]>([
  ['parked: it is unknown', { options: { onLost: 'park' } }, { docstate: { parked: {} } }],
  [
    'the next attempt is isolated',
    {},
    { state: 'paid', docstate: { lost: 1, attempts: 1, failure: { code: 'lost' } } },
  ],
  ['the next attempt is isolated', { docstate: { lost: 1, attempts: 1 } }, { docstate: { lost: 2, attempts: 2 } }],
  ['too many of its workers were lost', { docstate: { lost: 2, attempts: 2 } }, { state: 'error' }],
  ['no attempts are left', { options: { attempts: 1 } }, { state: 'error', error: { code: 'lost' } }],
])('the rescue of a started entry logs its decision: %s (%o)', async (received, lost, written) => {
  const recovered = await recover(lost)
  expect(recovered.received).toEqual([expect.stringContaining(received)])
  expect(recovered.written).toMatchObject(written)
})

test.each(['park', 'retry'] as const)(
  'an entry that had not started is released without a failed attempt (%s)',
  async (onLost) => {
    const { received, written, counts } = await recover({
      begun: false,
      docstate: { entry: '1-a' },
      options: { onLost },
    })
    expect(received).toEqual([expect.stringContaining('released')])
    expect(written).toMatchObject({ state: 'paid' })
    expect(written?.docstate).toEqual({ state: 'paid', entry: '1-a' })
    expect(counts.written).toEqual({ saved: 0, retry: 0, error: 0, parked: 0 })
  },
)

test('a rescue that another worker wrote first logs nothing', async () => {
  for (const begun of [true, false]) expect((await recover({ stored: 'lost', begun })).received).toEqual([])
})
