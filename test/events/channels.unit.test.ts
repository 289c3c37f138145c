import pino from 'pino'
import { expect, test, vi } from 'vitest'
import { createEvents, type Message } from '../../sidecar/events/channels.ts'

const start = (write = vi.fn()) => ({ write, events: createEvents({ log: pino({ level: 'error' }, { write }) }) })

/** A subscriber that records its messages. */
function listener() {
  const received: Message[] = []
  return {
    received,
    events: () => received.map(({ event }) => event),
    subscriber: (message: Message) => void received.push(message),
  }
}

test('the first subscriber creates a channel, and the last one removes it', () => {
  const { events } = start()
  expect(events.channel('a')).toBeUndefined()
  const refs = [events.subscribe('a', () => {}), events.subscribe('a', () => {})]
  expect(events.channel('a')).toBeDefined()
  events.unsubscribe(refs[0]!)
  events.unsubscribe(refs[0]!)
  expect(events.channel('a'), 'one subscription remains').toBeDefined()
  events.unsubscribe(refs[1]!)
  expect(events.channel('a')).toBeUndefined()
})

test('a message contains the event, the ref of the subscription, and the channel', () => {
  const { events } = start()
  const { received, subscriber } = listener()
  const [a, b] = [events.subscribe('a', subscriber), events.subscribe('b', subscriber)]
  events.channel('b')?.publish({ n: 1 })
  events.channel('a')?.publish({ n: 2 })
  expect(received).toEqual([
    { event: { n: 1 }, ref: b, channel: 'b' },
    { event: { n: 2 }, ref: a, channel: 'a' },
  ])
  expect(received[0]!.ref).toBe(b)
})

test('one function can subscribe twice, and each subscription ends separately', () => {
  const { events } = start()
  const { received, subscriber } = listener()
  const [first, second] = [events.subscribe('a', subscriber), events.subscribe('a', subscriber)]
  events.channel('a')?.publish(1)
  expect(received.map(({ ref }) => ref)).toEqual([first, second])
  events.unsubscribe(first)
  events.channel('a')?.publish(2)
  expect(received.slice(2)).toEqual([{ event: 2, ref: second, channel: 'a' }])
})

test('without a subscriber, the event is not created', () => {
  const { events } = start()
  const make = vi.fn(() => ({}))
  events.channel('a')?.publish(make())
  events.unsubscribe(events.subscribe('a', () => {}))
  events.channel('a')?.publish(make())
  expect(make).not.toHaveBeenCalled()
})

test.each([['a text'], [Symbol('a symbol')], [{ an: 'object' }], [undefined], [NaN], [Object.create(null)]])(
  'a channel can have the name %o',
  (name: unknown) => {
    const { events, write } = start()
    const { subscriber, events: received } = listener()
    events.subscribe(name, subscriber)
    events.subscribe(name, () => {
      throw new Error('mine')
    })
    events.channel(name)?.publish('x')
    expect(received()).toEqual(['x'])
    expect(write).toHaveBeenCalledOnce()
  },
)

test('a subscriber that throws or rejects is logged, without effect on others or the publisher', async () => {
  const { events, write } = start()
  const before = listener()
  const after = listener()
  events.subscribe('a', before.subscriber)
  events.subscribe('a', () => {
    throw new Error('thrown by a subscriber')
  })
  events.subscribe('a', async () => {
    throw new Error('rejected by a subscriber')
  })
  events.subscribe('a', after.subscriber)
  events.channel('a')?.publish(1)
  events.channel('a')?.publish(2)
  await new Promise(setImmediate)
  expect([before.events(), after.events()]).toEqual([
    [1, 2],
    [1, 2],
  ])
  const lines = write.mock.calls.map(([line]) => String(line))
  expect(lines.filter((line) => line.includes('thrown by a subscriber'))).toHaveLength(2)
  expect(lines.filter((line) => line.includes('rejected by a subscriber'))).toHaveLength(2)
})

test('the publisher does not wait for a slow subscriber', () => {
  const { events } = start()
  const { events: received, subscriber } = listener()
  events.subscribe('a', () => new Promise(() => {}))
  events.subscribe('a', subscriber)
  events.channel('a')?.publish(1)
  expect(received()).toEqual([1])
})

test('a subscription ends with its signal, and does not begin with an aborted one', () => {
  const { events } = start()
  const { events: received, subscriber } = listener()
  const leaving = new AbortController()
  events.subscribe('a', subscriber, { signal: leaving.signal })
  events.channel('a')?.publish(1)
  leaving.abort()
  expect(events.channel('a')).toBeUndefined()
  events.unsubscribe(events.subscribe('a', subscriber, { signal: leaving.signal }))
  expect(events.channel('a')).toBeUndefined()
  expect(received()).toEqual([1])
})

test('an ended subscription leaves no listener at the signal', () => {
  const { events } = start()
  const { signal } = new AbortController()
  const remove = vi.spyOn(signal, 'removeEventListener')
  events.unsubscribe(events.subscribe('a', () => {}, { signal }))
  expect(remove).toHaveBeenCalledOnce()
})

test('during a message, a leaving subscriber does not get it, and a new one gets the next', () => {
  const { events } = start()
  const late = listener()
  const leaving = listener()
  events.subscribe('a', () => {
    events.unsubscribe(ref)
    if (late.received.length === 0) events.subscribe('a', late.subscriber)
  })
  const ref = events.subscribe('a', leaving.subscriber)
  events.channel('a')?.publish(1)
  expect([leaving.events(), late.events()]).toEqual([[], []])
  events.channel('a')?.publish(2)
  expect(late.events()).toContain(2)
  expect(leaving.events()).toEqual([])
})
