/** Documents of which nothing could be written down: the feed is done with them, and no change will tell of them. */
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { cut, startFaultyProxy } from '../support/faulty-proxy.ts'
import { createSkippingClock } from '../support/skipping-clock.ts'
import { createPrefix, make, order, startVisits, stateOf, type Rig } from './rig.ts'

/** Only events bring a visit, after the first look. */
const HARDLY = [600_000, 600_000] as const

const untilRest = (rig: Rig) =>
  eventually(() => expect(rig.visited()).toMatchObject({ databases: 1, open: 0, waiting: 0 }))

test('a claim that its own worker has lost to the network is found by it, when its lease is over', async () => {
  const prefix = createPrefix()
  const proxy = await startFaultyProxy()
  let isAborted = false
  const rig = startVisits(prefix, {
    ...{ by: proxy.url, leaseMs: 1500, lookAgainMs: HARDLY },
    register: (control, handled) =>
      control.unsafe(
        'order',
        'paid',
        async (doc, ctx) => {
          handled.push(doc._id)
          if (handled.length > 1) return { ...doc, state: 'invoiced' }
          ctx.signal.addEventListener('abort', () => (isAborted = true))
          proxy.plan(({ path }) => (path.endsWith('/_bulk_docs') ? cut : undefined)) // no renewal comes through
          return new Promise<never>(() => undefined)
        },
        { onLost: 'retry' },
      ),
  })
  const [a] = await make(rig, `${prefix}-db-a`)
  await a!.put(order('o'))
  rig.tell(a!.name, 'created')
  await eventually(() => expect(rig.handled).toEqual(['o']))
  const { reads } = rig.visited()
  rig.tell(a!.name)
  await eventually(() => expect(rig.visited().reads).toBeGreaterThan(reads)) // it knows all revisions there are
  await eventually(() => expect(isAborted).toBe(true))
  proxy.plan(() => undefined)
  await eventually(async () => expect(await stateOf(a!, 'o')).toBe('invoiced'))
  await untilRest(rig)
  expect(rig.handled).toEqual(['o', 'o'])
})

test('a document of which CouchDB refuses every record is looked at again', async () => {
  const prefix = createPrefix()
  const clock = createSkippingClock()
  const rig = startVisits(prefix, { clock, lookAgainMs: HARDLY })
  const [a] = await make(rig, `${prefix}-db-a`)
  const validate_doc_update = `function (doc) { if (doc.state === 'invoiced' || doc.docstate) throw({ forbidden: 'no' }) }`
  const rev = await a!.put({ _id: '_design/guard', validate_doc_update })
  await a!.put(order('o'))
  rig.tell(a!.name, 'created')
  await eventually(() => expect(rig.handled).toEqual(['o']))
  await untilRest(rig)
  await a!.remove('_design/guard', rev)
  clock.skip(31_000)
  rig.tell(a!.name)
  await eventually(async () => expect(await stateOf(a!, 'o')).toBe('invoiced'))
  expect(rig.handled).toEqual(['o', 'o'])
})
