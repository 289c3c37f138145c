/** Documents whose outcome was not stored. The feed has passed them, and will not report them again. */
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { isInfo, ofThreeCopies, rewritten } from '../support/faults.ts'
import { cut, startFaultyProxy } from '../support/faulty-proxy.ts'
import { createSkippingClock } from '../support/skipping-clock.ts'
import { createPrefix, make, order, startVisits, stateOf, type Rig } from './rig.ts'

/** After the first listing of databases, only events start a visit. */
const HARDLY = [600_000, 600_000] as const

const untilRest = (rig: Rig) =>
  eventually(() => expect(rig.visited()).toMatchObject({ databases: 1, open: 0, waiting: 0 }))

test('a worker that loses its claim to a network fault finds the document again after the lease', async () => {
  const prefix = createPrefix()
  const proxy = await startFaultyProxy()
  let isAborted = false
  const rig = startVisits(prefix, {
    ...{ by: proxy.url, leaseMs: 4000, lookAgainMs: HARDLY },
    register: (control, handled) =>
      control.unsafe(
        'order',
        'paid',
        async (doc, ctx) => {
          handled.push(doc._id)
          if (handled.length > 1) return { ...doc, state: 'invoiced' }
          ctx.signal.addEventListener('abort', () => (isAborted = true))
          proxy.plan(({ path }) => (path.endsWith('/_bulk_docs') ? cut : undefined)) // every renewal fails
          return new Promise<never>(() => undefined)
        },
        { onLost: 'retry' },
      ),
  })
  const [a] = await make(rig, `${prefix}-db-a`)
  await a!.put(order('o'))
  rig.report(a!.name, 'created')
  await eventually(() => expect(rig.handled).toEqual(['o']))
  const { reads } = rig.visited()
  rig.report(a!.name)
  await eventually(() => expect(rig.visited().reads).toBeGreaterThan(reads)) // the worker has read all revisions
  await eventually(() => expect(isAborted).toBe(true))
  proxy.plan(() => undefined)
  await eventually(async () => expect(await stateOf(a!, 'o')).toBe('invoiced'))
  await untilRest(rig)
  expect(rig.handled).toEqual(['o', 'o'])
})

test('a document is retried later if CouchDB refuses every record of its outcome', async () => {
  const prefix = createPrefix()
  const clock = createSkippingClock()
  const rig = startVisits(prefix, { clock, lookAgainMs: HARDLY })
  const [a] = await make(rig, `${prefix}-db-a`)
  const validate_doc_update = `function (doc) { if (doc.state === 'invoiced' || doc.docstate) throw({ forbidden: 'no' }) }`
  const rev = await a!.put({ _id: '_design/guard', validate_doc_update })
  await a!.put(order('o'))
  rig.report(a!.name, 'created')
  await eventually(() => expect(rig.handled).toEqual(['o']))
  await untilRest(rig)
  await a!.remove('_design/guard', rev)
  clock.skip(31_000)
  rig.report(a!.name)
  await eventually(async () => expect(await stateOf(a!, 'o')).toBe('invoiced'))
  expect(rig.handled).toEqual(['o', 'o'])
})

test('on a cluster, a document that the feed omits is handled a minute after an edit conflict', async () => {
  const prefix = createPrefix()
  const [clock, proxy] = [createSkippingClock(), await startFaultyProxy()]
  const withoutHidden = rewritten((text) => {
    const page = JSON.parse(text) as { results: { id: string }[] }
    return JSON.stringify({ ...page, results: page.results.filter(({ id }) => id !== 'hidden') })
  })
  proxy.plan((request) =>
    isInfo(request) ? ofThreeCopies : request.path.endsWith('/_changes') ? withoutHidden : undefined,
  )
  const rig = startVisits(prefix, {
    ...{ by: proxy.url, clock, lookAgainMs: HARDLY },
    register: (control, handled) =>
      control.safe('order', 'paid', async (doc) => {
        handled.push(doc._id)
        const isFirst = handled.length === 1
        if (isFirst) await a!.put({ ...(await a!.get('o')), note: 'by another writer' })
        return { ...doc, state: 'invoiced' }
      }),
  })
  const [a] = await make(rig, `${prefix}-db-a`)
  await a!.put(order('hidden'))
  await a!.put(order('o'))
  rig.report(a!.name, 'created')
  await eventually(async () => expect(await stateOf(a!, 'o')).toBe('invoiced'))
  await untilRest(rig)
  expect(rig.handled).toEqual(['o', 'o'])
  clock.skip(61_000)
  rig.report(a!.name)
  await eventually(async () => expect(await stateOf(a!, 'hidden')).toBe('invoiced'))
})
