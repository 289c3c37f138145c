/** The ledger forgets all known states while an event is planned: its database was created again or restored. */
import { expect, test } from 'vitest'
import { systemClock } from '../../../sidecar/core/clock.ts'
import { eventId } from '../../../sidecar/global-changes/event-documents.ts'
import { allBuckets } from '../../../sidecar/global-changes/writing/bucket-partition.ts'
import { Coverage } from '../../../sidecar/global-changes/writing/coverage.ts'
import { Ledger } from '../../../sidecar/global-changes/writing/ledger.ts'
import { createTestCouch, freshDb } from '../../support/couchdb.ts'
import { pass, startFaultyProxy } from '../../support/faulty-proxy.ts'

test('an event whose note fails is not written, and can be planned again', async () => {
  const [events, orders, proxy] = [await freshDb('global-changes'), await freshDb('orders'), await startFaultyProxy()]
  const { signal } = new AbortController()
  const ledger = new Ledger(events)
  const coverage = new Coverage(createTestCouch({ url: proxy.url }), ledger, systemClock)
  const plan = () => coverage.plan([eventId('created', orders.name)], signal)
  await ledger.own(allBuckets.buckets(), signal)
  proxy.next(async (exchange) => {
    ledger.forget()
    await pass(exchange)
  })
  await expect(plan()).rejects.toMatchObject({ code: 'server', retry: 'soon' })
  await ledger.own(allBuckets.buckets(), signal)
  expect((await plan()).steps.flat()).toEqual([eventId('created', orders.name)])
})
