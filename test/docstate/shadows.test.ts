/** Shadow handlers: their effects are only logged. */
import pino from 'pino'
import { expect, test } from 'vitest'
import type { Context } from '../../sidecar/docstate/types.ts'
import { Counters } from '../../sidecar/docstate/counters.ts'
import { freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startRig, stateOf } from './rig.ts'

interface Line {
  readonly msg: string
  readonly doc?: string
  readonly would?: object
  readonly code?: string
}

function createLog() {
  const lines: Line[] = []
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as Line) })
  return { log, received: () => lines.filter(({ would }) => would !== undefined) }
}

test('the effects of a shadow handler are only logged, and the handler can read its own writes', async () => {
  const db = await freshDb('shadows')
  const { log, received } = createLog()
  const counts = new Counters()
  let found: unknown
  let isShadow: boolean | undefined
  const work = async (order: { _id: string; _rev: string }, ctx: Context) => {
    isShadow = ctx.isShadow
    const saved = await ctx.save({ ...order, type: 'order', state: 'paid', note: 'begun' })
    await ctx.put({ _id: 'receipt', type: 'receipt' })
    found = await ctx.find('receipt')
    await ctx.mail.send({ to: 'ann@example.com', subject: 'Your invoice', text: 'It is paid.' })
    return { ...saved, state: 'invoiced' }
  }
  await startRig(db, (control) => control.unsafe('order', 'paid', work, { shadow: true }), { log, counts })
  const _rev = await db.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(() => expect(received()).toHaveLength(1))
  expect(received()[0]).toMatchObject({ doc: 'o', would: { next: 'invoiced', saves: 1, puts: 1, mails: 1 } })
  expect(found).toMatchObject({ type: 'receipt', _rev: expect.stringMatching(/^1-/) as string })
  expect(isShadow).toBe(true)
  expect(await db.get('o')).toEqual({ _id: 'o', _rev, type: 'order', state: 'paid' })
  expect(await db.find('receipt')).toBeUndefined()
  const counted = [...counts.handlers()].map(({ state, counts: { runs } }) => [state, runs.next])
  expect(counted).toContainEqual(['paid (shadow)', 1])
})

test('a shadow handler runs once for each entry, also beside another handler and in a chain of states', async () => {
  const db = await freshDb('shadows')
  const tried: string[] = []
  const note = (doc: { _id: string; state: string }) => {
    tried.push(`${doc._id} ${doc.state}`)
    return Promise.reject(new Error('not ready'))
  }
  let tries = 0
  const { log, received } = createLog()
  await startRig(
    db,
    (control) => {
      control.safe('order', 'new', async (order) => ({ ...order, state: 'paid' }))
      control.unsafe(
        'order',
        'paid',
        async (order) => {
          if (++tries < 3) throw new Error('not yet')
          return { ...order, state: 'invoiced' }
        },
        { backoff: { baseMs: 20, capMs: 20 } },
      )
      control.unsafe('order', 'paid', note, { shadow: true })
      control.safe('order', 'invoiced', note, { shadow: true })
    },
    { log },
  )
  await db.put({ _id: 'o', type: 'order', state: 'new' })
  await eventually(async () => expect(await stateOf(db, 'o')).toBe('invoiced'))
  await eventually(() => expect(tried).toEqual(['o paid', 'o invoiced']))
  await eventually(() => expect(received()[0]).toMatchObject({ would: { next: null }, reason: 'not ready' }))
  expect(await db.get('o')).not.toHaveProperty('docstate')
})

test.each([false, true])(
  'a shadow handler runs once in a state with a timeout (beside another handler: %s)',
  async (beside) => {
    const db = await freshDb('shadows')
    const tried: unknown[] = []
    const machines = {
      offer: { open: { mode: 'safe', next: { gone: 'sidecar' }, timeout: { afterMs: 1500, next: 'gone' } }, gone: {} },
    } as const
    await startRig(
      db,
      (control) => {
        control.safe('offer', 'open', (offer) => Promise.resolve(void tried.push([offer._id, offer._rev])), {
          shadow: true,
        })
        if (beside) control.safe('offer', 'open', () => Promise.resolve())
      },
      { machines },
    )
    const _rev = await db.put({ _id: 'o', type: 'offer', state: 'open' })
    await eventually(() => expect(tried).toEqual([['o', _rev]]))
    await eventually(async () => expect(await stateOf(db, 'o')).toBe('gone'))
    expect(tried).toHaveLength(1)
  },
)

test('a shadow handler that hangs delays neither other handlers nor the stop of the sidecar', async () => {
  const db = await freshDb('shadows')
  const hang = () => new Promise<void>(() => undefined)
  const rig = await startRig(
    db,
    (control) => {
      control.safe('order', 'paid', async (order) => ({ ...order, state: 'invoiced' }))
      control.safe('order', 'paid', hang, { shadow: true, concurrency: 1 })
    },
    { graceMs: 600_000 },
  )
  const ids = Array.from({ length: 200 }, (_, n) => `o${n}`)
  await db.bulk(ids.map((_id) => JSON.stringify({ _id, type: 'order', state: 'paid' })))
  const left = async () => (await db.getMany(ids)).filter(({ state }) => state !== 'invoiced')
  await eventually(async () => expect(await left()).toEqual([]))
  expect(rig.engine.health().inFlight).toBe(0)
  await rig.stop()
})
