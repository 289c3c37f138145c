import { expect, expectTypeOf, test, vi } from 'vitest'
import type { GlobalChangesSettings } from '../../sidecar/global-changes/writing/event-settings.ts'
import { freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { createLive, defaults, ERROR, INFO, set, startLive, WARN } from './rig.ts'

test('a part has its defaults, then its document’s values, then its defaults after the deletion', async () => {
  const { db, now, said } = await startLive()
  expect(now()).toEqual(defaults)
  await set(db, { update_db: false, max_event_delay: 50 })
  await eventually(() => expect(now()).toEqual({ ...defaults, update_db: false, max_event_delay: 50 }))
  await set(db, { type: 'config', max_event_delay: 0 })
  await eventually(() => expect(now()).toEqual({ ...defaults, max_event_delay: 0 }))
  await set(db, undefined)
  await eventually(() => expect(now()).toEqual(defaults))
  await set(db, { sweep_interval: 1000 })
  await eventually(() => expect(now()).toEqual({ ...defaults, sweep_interval: 1000 }))
  expect(said(INFO).map(({ part, from, to }) => [part, from, to])).toEqual([
    ['global_changes', { update_db: true, max_event_delay: 25 }, { update_db: false, max_event_delay: 50 }],
    ['global_changes', { update_db: false, max_event_delay: 50 }, { update_db: true, max_event_delay: 0 }],
    ['global_changes', { max_event_delay: 0 }, { max_event_delay: 25 }],
    ['global_changes', { sweep_interval: 60_000 }, { sweep_interval: 1000 }],
  ])
})

test('earlier settings apply once they are read, with the types of the table', async () => {
  const db = await freshDb('live')
  await set(db, { update_db: false })
  const { live, start, now } = createLive(db)
  expect(now()).toEqual(defaults)
  await start()
  const settings = live.of('global_changes')
  expect(settings).toEqual({ ...defaults, update_db: false })
  expectTypeOf(settings).toEqualTypeOf<GlobalChangesSettings>()
  expectTypeOf(settings).toEqualTypeOf<{
    readonly update_db: boolean
    readonly max_event_delay: number
    readonly max_write_delay: number
    readonly sweep_interval: number
  }>()
})

test('without a guard, unusable values are ignored and logged once', async () => {
  const { db, now, said } = await startLive()
  const wrong = { type: 'device', update_db: 'off', max_event_delay: -1, sweep_interval: 1.5, surprise: 'x' }
  await set(db, { ...wrong, max_write_delay: 70 })
  await eventually(() => expect(now()).toEqual({ ...defaults, max_write_delay: 70 }))
  await set(db, { ...wrong, max_write_delay: 80 })
  await eventually(() => expect(now()).toEqual({ ...defaults, max_write_delay: 80 }))
  expect(said(WARN)).toHaveLength(1)
  for (const key of ['type', 'update_db', 'max_event_delay', 'sweep_interval']) {
    expect(said(WARN)[0]?.reason).toContain(`${key}: expected `)
  }
  expect(said(WARN)[0]).toMatchObject({ part: 'global_changes', reason: expect.stringContaining('surprise') as string })

  await set(db, { max_write_delay: 90 })
  await eventually(() => expect(now().max_write_delay).toBe(90))
  await set(db, { ...wrong, max_write_delay: 100 })
  await eventually(() => expect(now().max_write_delay).toBe(100))
  expect(said(WARN), 'a fault that returns after its repair is logged again').toHaveLength(2)
})

test('a value that becomes invalid falls back to its default', async () => {
  const { db, now } = await startLive()
  await set(db, { max_event_delay: 50 })
  await eventually(() => expect(now().max_event_delay).toBe(50))
  await set(db, { max_event_delay: '60' })
  await eventually(() => expect(now()).toEqual(defaults))
})

test('documents of unknown parts are ignored', async () => {
  const { db, now, said } = await startLive()
  await db.put({ _id: 'config:nonsense', update_db: false })
  await db.put({ _id: 'config:constructor', update_db: false })
  await set(db, { max_event_delay: 50 })
  await eventually(() => expect(now()).toEqual({ ...defaults, max_event_delay: 50 }))
  expect(said(WARN)).toEqual([])
})

test('listeners and events receive all settings of the part on each change of a value, and only then', async () => {
  const db = await freshDb('live')
  await set(db, defaults) // equal values are no change
  const { live, events, start, now, said } = createLive(db)
  const listener = vi.fn((settings: GlobalChangesSettings) => expect(settings).toEqual(now()))
  live.onChange('global_changes', listener)
  const received: unknown[] = []
  events.subscribe('settings:changed', ({ event }) => void received.push(event))
  await start()
  await set(db, { max_event_delay: 50 })
  await eventually(() => expect(listener).toHaveBeenCalledOnce())
  await set(db, { max_event_delay: 50, update_db: true })
  await set(db, { max_event_delay: 50, type: 'config' })
  await set(db, { max_event_delay: 60 })
  await eventually(() => expect(now().max_event_delay).toBe(60))
  const changes = [50, 60].map((max_event_delay) => ({ ...defaults, max_event_delay }))
  expect(listener.mock.calls).toEqual(changes.map((settings) => [settings]))
  expect(received).toEqual(changes.map((settings) => ({ part: 'global_changes', settings })))
  expect(said(INFO)).toHaveLength(2)
  expect(said(ERROR)).toEqual([])
})

test('a listener that throws, at once or later, affects no other part', async () => {
  const { db, live, said } = await startLive()
  const listener = vi.fn()
  live.onChange('global_changes', () => {
    throw new Error('at once')
  })
  live.onChange('global_changes', vi.fn().mockRejectedValue(new Error('later')))
  live.onChange('global_changes', listener)
  await set(db, { max_event_delay: 50 })
  await eventually(() => expect(listener).toHaveBeenCalledTimes(1))
  await set(db, { max_event_delay: 60 })
  await eventually(() => expect(listener).toHaveBeenCalledTimes(2))
  expect(said(ERROR)).toHaveLength(4)
})

test('a listener receives nothing after its signal aborts', async () => {
  const { db, live } = await startLive()
  const [leaving, staying] = [vi.fn(), vi.fn()]
  const left = new AbortController()
  live.onChange('global_changes', leaving, left.signal)
  live.onChange('global_changes', staying)
  await set(db, { max_event_delay: 50 })
  await eventually(() => expect(staying).toHaveBeenCalledTimes(1))
  left.abort()
  await set(db, { max_event_delay: 60 })
  await eventually(() => expect(staying).toHaveBeenCalledTimes(2))
  expect(leaving).toHaveBeenCalledTimes(1)
})
