import { expect, test } from 'vitest'
import { defineHandlers, defineMachines, Reject } from '../../sidecar/index.ts'
import type { Machines } from '../../ddocs/machine.ts'
import { ConfigError } from '../../sidecar/core/errors.ts'
import { createClassify } from '../../sidecar/docstate/classify.ts'
import { createControl } from '../../sidecar/docstate/control.ts'
import { collectHandlers, joinHandlers } from '../../sidecar/docstate/handlers.ts'

interface Order {
  email?: string
  total: number
}

const machines = defineMachines({
  order: {
    paid: { mode: 'unsafe', create: 'client', next: { invoiced: 'sidecar', cancelled: 'client' } },
    invoiced: { mode: 'safe', next: { sent: 'sidecar' } },
    sent: {},
    cancelled: {},
  },
})

// The compiler checks these handlers (npm run types). The test only collects them.
const typed = defineHandlers(machines, (control) => {
  control.unsafe('order', 'paid', async (order: Order, ctx) => {
    if (!order.email) throw new Reject('no_address', 'an order needs an address')
    await ctx.mail.send({ to: order.email, subject: 'x', text: String(order.total) })
    return { ...order, state: 'invoiced' }
  })
  control.safe('order', 'invoiced', async (order) => ({ ...order, state: 'sent', by: order._id }))
})

test('a declared machine types its handlers', () => {
  expect(collectHandlers(typed).registrations.map(({ state, mode }) => [state, mode])).toEqual([
    ['paid', 'unsafe'],
    ['invoiced', 'safe'],
  ])
})

test('a handler that its machine does not allow fails to compile and is refused at run time', () => {
  const wrong = defineHandlers(machines, (control) => {
    // @ts-expect-error the machine has no transition from paid to sent
    control.unsafe('order', 'paid', async (order) => ({ ...order, state: 'sent' }))
    // @ts-expect-error only a client cancels an order
    control.unsafe('order', 'paid', async (order) => ({ ...order, state: 'cancelled' }))
    // @ts-expect-error the machine declares unsafe
    control.safe('order', 'paid', async (order) => ({ ...order, state: 'invoiced' }))
    // @ts-expect-error the state sent has no mode
    control.safe('order', 'sent', async () => undefined)
    // @ts-expect-error the type bill is not declared
    control.safe('bill', 'paid', async () => undefined)
  })
  expect(() => collectHandlers(wrong)).toThrow(/two handlers|declares/)
})

function faultsOf(module: Parameters<typeof collectHandlers>[0]): readonly string[] {
  try {
    collectHandlers(module)
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown.faults
    throw thrown
  }
  return []
}

test('all faults of a module are reported at once, with suggestions', () => {
  const wrong = defineHandlers(machines as Machines, (control) => {
    control.safe('oder', 'paid', async () => undefined)
    control.unsafe('order', 'piad', async () => undefined)
    control.unsafe('constructor', 'name', async () => undefined)
    control.resolve('oder', ({ ours }) => ours)
  })
  const faults = faultsOf(wrong)
  const PLACE = / \(test\/docstate\/handlers\.unit\.test\.ts:\d+:13\)$/
  for (const fault of faults) expect(fault).toMatch(PLACE)
  expect(faults.map((fault) => fault.replace(PLACE, ''))).toEqual([
    'safe handler for oder in state paid: expected a type that has a machine (order), or a module of its own; got oder (did you mean order?)',
    'unsafe handler for order in state piad: the machine of order declares as unsafe: paid (did you mean paid?)',
    'unsafe handler for constructor in state name: expected a type that has a machine (order), or a module of its own; got constructor',
    'resolver for oder: expected a type that has a machine (order), or a module of its own; got oder (did you mean order?)',
  ])
})

test('inconsistent machines are refused before any handler is registered', () => {
  const broken = { order: { paid: { mode: 'safe', next: { invoicd: 'sidecar' } }, invoiced: {} } } as const
  const module = defineHandlers(broken as Machines, () => {
    throw new Error('not called')
  })
  expect(() => collectHandlers(module)).toThrow('got invoicd (did you mean invoiced?)')
})

test('a handler in another module is checked against the machine of its type', () => {
  const other = collectHandlers(defineHandlers((control) => control.safe('order', 'sennt', async () => undefined)))
  expect(() => joinHandlers([collectHandlers(typed), other])).toThrow(
    'safe handler for order in state sennt: the machine of order declares as safe: invoiced',
  )
})

test('without machines, any type and state is accepted', () => {
  const free = defineHandlers((control) => {
    control.safe('photo', 'uploaded', async (photo) => ({ ...photo, state: 'listed' }))
  })
  expect(collectHandlers(free).registrations).toHaveLength(1)
})

test('joining handlers fails if two modules declare the same type or handle the same state', () => {
  const photos = collectHandlers(
    defineHandlers((control) => control.safe('photo', 'uploaded', async (photo) => ({ ...photo, state: 'listed' }))),
  )
  const orders = collectHandlers(typed)
  expect(joinHandlers([photos, orders]).registrations).toHaveLength(3)
  expect(() => joinHandlers([photos, orders, photos, orders])).toThrow(
    /machine for order: .*\na handler for photo in state uploaded: .*\na handler for order in state paid/,
  )
})

test.each([
  [{ concurrency: 0 }, 'concurrency: expected a whole number of at least 1, got 0'],
  [{ concurrency: NaN }, 'concurrency: expected a whole number of at least 1, got NaN'],
  [{ attempts: 1.5 }, 'attempts: expected a whole number of at least 1, got 1.5'],
  [{ backoff: { baseMs: -1, capMs: 1 } }, 'backoff.baseMs: expected milliseconds, got -1'],
  [
    { backoff: { baseMs: 1, capMs: 1e300 } },
    'backoff.capMs: expected at most a hundred years, in milliseconds, got 1e+300',
  ],
  [{ backoff: 1000 }, 'backoff: expected { baseMs, capMs }, got 1000'],
  [{ backoff: { base: 1 } }, 'there is no option backoff.base (did you mean baseMs?); there are baseMs, capMs'],
  [{ onLost: 'forget' }, "onLost: expected 'park' or 'retry', got 'forget'"],
  [{ timeout: 30 }, 'timeout: expected a time such as 90s, 30m or 24h, got 30'],
  [{ timeout: '0s' }, "timeout: expected a time such as 90s, 30m or 24h, got '0s'"],
  [{ timeout: '5 monkeys' }, "timeout: expected a time such as 90s, 30m or 24h, got '5 monkeys'"],
  [
    { atempts: 3 },
    'there is no option atempts (did you mean attempts?); there are timeout, concurrency, globalConcurrency, key, limit, attempts',
  ],
  [{ globalConcurrency: 0 }, 'globalConcurrency: expected a whole number of at least 1, got 0'],
  [{ key: 'customer' }, "key: expected a function of the document, got 'customer'"],
  [{ limit: 600 }, "limit: expected { count, per }, such as { count: 600, per: '1m' }, got 600"],
  [{ limit: { count: 600 } }, 'limit.per: expected a time such as 90s, 30m or 24h, got undefined'],
  [{ limit: { count: 1, per: '1m', burst: 3 } }, 'there is no option limit.burst; there are count, per'],
  [{ priority: 10 }, 'priority: expected a whole number from 0 to 9, got 10'],
  [{ priority: 'high' }, "priority: expected a whole number from 0 to 9, got 'high'"],
  [{ since: '2026-01-01' }, "since: expected 'beginning' or 'now', got '2026-01-01'"],
  [{ shadow: 'yes' }, "shadow: expected true or false, got 'yes'"],
  [{ version: 7 }, 'version: expected a text of 1 to 100 characters, got 7'],
])('invalid handler options are refused: %j', (options, named) => {
  const register = () => createControl<Machines>({}).unsafe('order', 'paid', async () => undefined, options as object)
  expect(register).toThrow('the unsafe handler for order in state paid')
  expect(register).toThrow(named)
})

test('a missing function and invalid options are refused in JavaScript', () => {
  const control = createControl<Machines>({}) as unknown as Record<string, (...args: unknown[]) => void>
  const work = () => Promise.resolve()
  expect(() => control.safe!('order', 'paid')).toThrow('state paid: expected a function, got undefined')
  expect(() => control.safe!('order', 'paid', work, 5)).toThrow('state paid: options: expected an object, got 5')
  expect(() => control.schedule!('report', { cron: '@daily' })).toThrow('the schedule report: expected a function')
  expect(() => control.schedule!('report')).toThrow('the schedule report: options: expected an object, got undefined')
  expect(() => control.deleted!('order', 'work')).toThrow("deletions of order: expected a function, got 'work'")
})

test('a state takes at most one handler and one shadow handler', () => {
  const control = createControl<Machines>({})
  const register = (shadow: boolean) => () => control.safe('order', 'paid', () => Promise.resolve(), { shadow })
  for (const shadow of [true, false]) register(shadow)()
  expect([control.registrations.length, control.shadows.length]).toEqual([1, 1])
  expect(register(false)).toThrow('two handlers for order in state paid: expected one')
  expect(register(true)).toThrow('two shadow handlers for order in state paid: expected one')
})

test('omitted options get their defaults', () => {
  const control = createControl<Machines>({})
  const options = { timeout: '90s', concurrency: undefined, backoff: { baseMs: 50 } } as object
  control.unsafe('order', 'paid', async () => undefined, options)
  const backoff = { baseMs: 50, capMs: 14_400_000 }
  const expected = {
    timeoutMs: 90_000,
    concurrency: 32,
    attempts: 20,
    backoff,
    onLost: 'park',
    priority: 5,
    since: 'beginning',
    shadow: false,
  }
  expect(control.registrations[0]!.options).toEqual(expected)
})

test('all engines share one registration for the timeout of a state', () => {
  const machines: Machines = { order: { new: { timeout: { afterMs: 1, next: 'late' } }, late: {} } }
  const doc = {
    _id: 'o',
    _rev: '1-1',
    type: 'order',
    state: 'new',
    docstate: { state: 'new', timeout_at: '2020-01-01' },
  }
  const [one, two] = [1, 2].map(() => createClassify({ registrations: [], machines })(doc, Date.now()))
  expect(one).toMatchObject({ kind: 'ready', registration: { type: 'order', state: 'new' } })
  expect((two as { registration: object }).registration).toBe((one as { registration: object }).registration)
})
