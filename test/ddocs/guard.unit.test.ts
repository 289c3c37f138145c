import { expect, test } from 'vitest'
import { isAdmin, quote } from '../../ddocs/lib/document.ts'
import { refusalOf } from '../../ddocs/lib/guard.ts'
import { same } from '../../ddocs/lib/same.ts'

const machines = {
  order: {
    paid: { create: 'client', next: { paid: 'client', closed: 'owner' } },
    closed: { create: 'owner' },
  },
} as const
const stranger = { db: 'orders', name: 'somebody', roles: ['customer'] }
const order = { _id: 'o', type: 'order', state: 'paid' }

const refusal = (
  newDoc: object,
  oldDoc: object | null = null,
  userCtx: typeof stranger | { db: string; name: null; roles: [] } = stranger,
) =>
  refusalOf({
    newDoc: newDoc as Record<string, unknown>,
    oldDoc: oldDoc as Record<string, unknown> | null,
    userCtx,
    machines,
  })

test('a replicated document arrives as its first revision, and each change as the next', () => {
  const arriving = (start: number) => ({ ...order, _revisions: { start, ids: [] } })
  expect(refusal(arriving(1))).toBeUndefined()
  expect(refusal(arriving(2))).toContain('got revision 2 after 0')
  expect(refusal(arriving(4), { ...order, _rev: '3-a' })).toBeUndefined()
  expect(refusal(arriving(5), { ...order, _rev: '3-a' })).toContain('got revision 5 after 3')
  expect(refusal({ ...order, _revisions: 'garbage' })).toBeUndefined()
})

test('a document written over a deleted one counts as new', () => {
  const deleted = { _id: 'o', _rev: '2-a', _deleted: true, type: 'order', state: 'closed' }
  expect(refusal(order, deleted)).toBeUndefined()
  expect(refusal({ ...order, state: 'closed' }, deleted)).toContain('begins in state paid')
})

test('a client may use the old and the new name of a renamed state', () => {
  const renaming = {
    bill: {
      overdue: { renamed: 'late' },
      late: { create: 'client', next: { late: 'client', settled: 'client' } },
      settled: { next: { late: 'sidecar' } },
      paid: { renamed: 'settled' },
    },
  } as const
  const bill = (state: string, more: object = {}) => ({ _id: 'b', type: 'bill', state, ...more })
  const write = (newDoc: object, oldDoc: object | null = null) =>
    refusalOf({
      newDoc: { ...newDoc },
      oldDoc: oldDoc && { _rev: '1-a', ...oldDoc },
      userCtx: stranger,
      machines: renaming,
    })
  const names = ['overdue', 'late']
  for (const from of names) {
    expect(write(bill(from))).toBeUndefined()
    for (const to of [...names, 'paid', 'settled']) expect(write(bill(to), bill(from)), `${from} ${to}`).toBeUndefined()
  }
  expect(write(bill('paid'))).toContain('begins in state late; got "settled"')
  for (const to of names)
    expect(write(bill(to), bill('paid'))).toContain('in state settled may be written in state (none)')
  expect(write(bill('lost'))).toContain('one of the states late, settled; got "lost"')
  const handled = { docstate: { state: 'overdue', handled: 'then' } }
  expect(write(bill('overdue', handled), bill('overdue', handled))).toContain('the field docstate')
  expect(write(bill('paid', handled), bill('overdue', handled))).toBeUndefined()
  const held = bill('overdue', { docstate: { state: 'overdue', claim: { token: 't' } } })
  expect(write(bill('paid'), held)).toContain('is being handled')
})

test('a document whose state ends at its own time field must have a valid time', () => {
  const timed = {
    lesson: {
      planned: { create: 'client', next: { planned: 'client' }, timeout: { at: 'begins_at', next: 'begun' } },
      begun: {},
    },
  } as const
  const write = (begins_at: unknown, oldDoc: object | null = null) => {
    const newDoc = { _id: 'l', type: 'lesson', state: 'planned', begins_at }
    return refusalOf({ newDoc, oldDoc: oldDoc as Record<string, unknown> | null, userCtx: stranger, machines: timed })
  }
  expect(write('2026-11-26T12:00:00Z')).toBeUndefined()
  expect(write('2026-11-26T12:00:00.5+05:30')).toBeUndefined()
  for (const none of [
    undefined,
    null,
    0,
    '',
    'tomorrow',
    '2026-11-26',
    '2026-11-26T12:00:00',
    '2026-11-26T25:00:00Z',
    {},
  ]) {
    expect(write(none)).toMatch(/^begins_at: expected a time such as 2026-11-26T12:00:00Z, got /)
  }
  const before = { _id: 'l', _rev: '1-a', type: 'lesson', state: 'planned', begins_at: '2026-11-26T12:00:00Z' }
  expect(write('2026-11-27T12:00:00Z', before)).toBeUndefined()
  expect(write('soon', before)).toMatch(/^begins_at: /)
})

test('error messages use the right article for a type', () => {
  expect(refusal({ ...order, state: 'lost' })).toMatch(/^an order document has one of the states/)
})

test('an anonymous user does not own a document without an owner', () => {
  const anonymous = { db: 'orders', name: null, roles: [] as [] }
  const closing = { ...order, state: 'closed' }
  for (const user of [null, undefined, '']) {
    expect(refusal({ ...closing, user }, { ...order, user, _rev: '1-a' }, anonymous)).toContain('closed (by its owner)')
  }
  expect(refusal({ ...closing, user: 'somebody' }, { ...order, user: 'somebody', _rev: '1-a' })).toBeUndefined()
})

test('no client may create a document in a state that only owners may create', () => {
  expect(refusal({ ...order, state: 'closed' })).toContain('begins in state paid')
})

test('only an admin may change a document in an unknown state', () => {
  expect(refusal(order, { ...order, state: 'lost', _rev: '1-a' })).toContain('may be written in state (none)')
})

test('only server admins are admins', () => {
  expect(isAdmin({ db: 'd', name: 'a', roles: ['_admin'] })).toBe(true)
  expect(isAdmin({ db: 'd', name: '_admin', roles: ['admin'] })).toBe(false)
})

test('the order of keys does not matter when two values are compared', () => {
  expect(same({ a: 1, b: [1, { c: 2 }] }, { b: [1, { c: 2 }], a: 1 })).toBe(true)
  expect(same({ a: undefined }, {})).toBe(true)
  for (const [one, other] of [
    [{ a: 1 }, { a: 2 }],
    [[1], { 0: 1 }],
    [null, {}],
    [[1, 2], [1]],
    ['1', 1],
    [{}, undefined],
  ]) {
    expect(same(one, other)).toBe(false)
  }
})

test('a value is quoted in a few characters, for any length', () => {
  expect([undefined, null, 1, 'a"', ['x'], { x: 1 }].map(quote)).toEqual([
    'nothing',
    'null',
    '1',
    '"a\\""',
    'an array',
    'an object',
  ])
  expect(quote('x'.repeat(1_000_000)).length).toBeLessThan(70)
})

const steps = {
  sync: {
    new: { create: 'client', next: { active: 'sidecar', ended: 'client' } },
    invite: { next: { active: 'client', ended: 'client' } },
    active: { next: { active: 'client', paused: 'client', ended: 'client' } },
    paused: { next: { active: 'client', ended: 'client', locked: 'owner' } },
    ended: { next: { new: 'client' } },
    locked: {},
  },
} as const
const states = ['new', 'invite', 'active', 'paused', 'ended', 'locked'] as const

test('several offline steps may arrive as one, if a client may make each of them', () => {
  const take = (from: string | undefined, to: string, mayHaveSteps: boolean, roles: string[] = [], start = 9) => {
    const sync = { _id: 's', type: 'sync', owner_role: 'owner-1' }
    const newDoc = { ...sync, state: to, _revisions: { start, ids: [] } }
    const oldDoc = from === undefined ? null : { ...sync, state: from, _rev: '3-a' }
    const reason = refusalOf({ newDoc, oldDoc, userCtx: { db: 'd', name: 'a', roles }, machines: steps, mayHaveSteps })
    return reason === undefined
  }
  const taken = (from: string | undefined, roles?: string[]) => states.filter((to) => take(from, to, true, roles))
  expect(states.filter((to) => take(undefined, to, true, [], 1))).toEqual(['new', 'ended'])
  expect(taken(undefined)).toEqual(['new', 'active', 'paused', 'ended']) // an earlier revision is unknown
  expect(taken('new')).toEqual(['new', 'ended'])
  expect(taken('invite')).toEqual(['new', 'active', 'paused', 'ended'])
  expect(taken('active')).toEqual(['new', 'active', 'paused', 'ended'])
  expect(taken('active', ['owner-1'])).toEqual(['new', 'active', 'paused', 'ended', 'locked'])
  expect(taken('ended')).toEqual(['new', 'ended'])
  expect(taken('locked')).toEqual([])
  for (const from of [undefined, ...states]) for (const to of states) expect(take(from, to, false)).toBe(false)
})

test('a client may write back the docstate of the state it leaves, but no other docstate', () => {
  const handled = { state: 'paid', handled: '2026-01-01T00:00:00.000Z' }
  const before = { ...order, _rev: '1-a', user: 'somebody', docstate: handled }
  const taken = (change: object) => refusal({ ...before, ...change }, before) === undefined
  expect(taken({ state: 'closed' })).toBe(true)
  expect(taken({ state: 'closed', docstate: undefined })).toBe(true)
  expect(taken({ state: 'paid', docstate: undefined })).toBe(true)
  expect(taken({ state: 'paid' })).toBe(false) // with the handled mark the entry would not be handled again
  expect(taken({ state: 'closed', docstate: { ...handled, handled: 'x' } })).toBe(false)
  expect(taken({ state: 'closed', docstate: { state: 'closed', handled: 'x' } })).toBe(false)
  const remnant = { ...before, state: 'closed' }
  expect(refusal({ ...remnant, state: 'paid' }, remnant)).toBeDefined()
})
