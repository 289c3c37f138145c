import type { Logger } from 'pino'
import type { Membership } from './role.ts'

/** Identifies a registration or a subscription of this process. */
export interface Ref {
  readonly role: string
  /** Id of the worker, or of the subscription. */
  readonly id: string
}

export type Subscriber = (membership: Membership & { readonly ref: Ref }) => void

interface Subscription {
  readonly ref: Ref
  readonly subscriber: Subscriber
  /** Version of the last notification. */
  notified: string | undefined
}

/** Subscribers to one role. Each receives a version once, and nothing after its subscription ends. */
export class Subscriptions {
  readonly #all = new Set<Subscription>()
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  get size(): number {
    return this.#all.size
  }

  /** Returns a function that ends the subscription. */
  add(ref: Ref, subscriber: Subscriber, known: Membership | undefined): () => void {
    const subscription: Subscription = { ref, subscriber, notified: undefined }
    this.#all.add(subscription)
    if (known) this.#notify(subscription, known)
    return () => void this.#all.delete(subscription)
  }

  /** Notifies the current subscribers. A subscriber may add and end subscriptions meanwhile. */
  notifyAll(membership: Membership): void {
    for (const subscription of [...this.#all]) this.#notify(subscription, membership)
  }

  clear(): void {
    this.#all.clear()
  }

  #notify(subscription: Subscription, membership: Membership): void {
    const { ref, subscriber, notified } = subscription
    if (notified === membership.version || !this.#all.has(subscription)) return
    subscription.notified = membership.version
    try {
      subscriber({ ...membership, ref })
    } catch (err) {
      this.#log.error({ role: membership.role, err }, 'a subscriber to the membership failed')
    }
  }
}
