import { onAbort } from '../core/on-abort.ts'
import { inspect } from 'node:util'
import type { Logger } from 'pino'
import type { EventMap } from './map.ts'

/** A subscription. Every message carries it, and `unsubscribe` ends it. */
export interface Ref {
  readonly channel: unknown
}

export interface Message<E = unknown> {
  /** The same object for every subscriber. */
  readonly event: Readonly<E>
  readonly ref: Ref
  readonly channel: unknown
}

export type Subscriber<E = unknown> = (message: Message<E>) => unknown

/** A channel with at least one subscriber. */
export interface Channel<E = unknown> {
  /** Calls every subscriber, in the order of the subscriptions. Never throws. */
  publish(event: E): void
}

/**
 * Event channels, named by any key of a `Map`; `EventMap` lists the sidecar's own. A channel exists while it has a
 * subscriber (after Paul J. Davis, "Couch Events").
 *
 * @example
 * const ref = events.subscribe('mail:sent', ({ event }) => console.log(event.to), { signal })
 * events.channel('mail:sent')?.publish({ to }) // without subscribers the event is not even created
 * events.unsubscribe(ref)
 */
export interface Events {
  /** Returns the channel, if it has a subscriber. One look-up. */
  channel<K extends keyof EventMap>(name: K): Channel<EventMap[K]> | undefined
  channel(name: unknown): Channel | undefined
  /** Calls the subscriber for every later event, until `unsubscribe` or the signal. */
  subscribe<K extends keyof EventMap>(name: K, subscriber: Subscriber<EventMap[K]>, options?: SubscribeOptions): Ref
  subscribe(name: unknown, subscriber: Subscriber, options?: SubscribeOptions): Ref
  /** Ends a subscription at once. Does nothing for an ended subscription, or one of other `Events`. */
  unsubscribe(ref: Ref): void
}

export interface SubscribeOptions {
  readonly signal?: AbortSignal
}

interface Subscription {
  readonly ref: Ref
  readonly subscriber: Subscriber
  readonly end: () => void
  ended: boolean
}

export function createEvents({ log }: { readonly log: Logger }): Events {
  const live = new Map<unknown, LiveChannel>()
  const subscriptions = new Map<Ref, Subscription>()
  const report = (channel: unknown, err: unknown) =>
    log.error({ channel: inspect(channel), err }, 'a subscriber to events failed')

  function subscribe(name: unknown, subscriber: Subscriber, { signal }: SubscribeOptions = {}): Ref {
    const ref: Ref = Object.freeze({ channel: name })
    if (signal?.aborted) return ref
    const subscription = { ref, subscriber, ended: false, end: onAbort(signal, () => unsubscribe(ref)) }
    subscriptions.set(ref, subscription)
    const channel = live.get(name) ?? new LiveChannel(name, report)
    live.set(name, channel)
    channel.subscriptions = [...channel.subscriptions, subscription]
    return ref
  }

  function unsubscribe(ref: Ref): void {
    const subscription = subscriptions.get(ref)
    if (!subscription) return
    subscription.ended = true
    subscription.end()
    subscriptions.delete(ref)
    const channel = live.get(ref.channel)!
    channel.subscriptions = channel.subscriptions.filter((other) => other !== subscription)
    if (channel.subscriptions.length === 0) live.delete(ref.channel)
  }

  return { channel: (name: unknown) => live.get(name), subscribe, unsubscribe }
}

class LiveChannel implements Channel {
  /** Replaced, never changed: a message goes to those who subscribed before its publication. */
  subscriptions: readonly Subscription[] = []
  readonly #name: unknown
  readonly #report: (channel: unknown, err: unknown) => void

  constructor(name: unknown, report: (channel: unknown, err: unknown) => void) {
    this.#name = name
    this.#report = report
  }

  publish(event: unknown): void {
    for (const { ref, subscriber, ended } of this.subscriptions) {
      if (!ended) this.#call(subscriber, { event, ref, channel: this.#name } as Message)
    }
  }

  #call(subscriber: Subscriber, message: Message): void {
    try {
      const answer = subscriber(message)
      if (answer instanceof Promise) answer.catch((thrown: unknown) => this.#report(this.#name, thrown))
    } catch (thrown) {
      this.#report(this.#name, thrown)
    }
  }
}
