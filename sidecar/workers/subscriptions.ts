import type { Logger } from 'pino'
import type { Membership } from './role.ts'

/** A registration, or a subscription, of this process. */
export interface Ref {
  readonly role: string
  /** Of the worker, or of the subscription. */
  readonly id: string
}

export type Subscriber = (membership: Membership & { readonly ref: Ref }) => void

interface Subscription {
  readonly ref: Ref
  readonly subscriber: Subscriber
  /** Version. */
  told: string | undefined
}

/** Those who want to know of one role. Each is told of a version once, and nothing after its end. */
export class Subscriptions {
  readonly #all = new Set<Subscription>()
  readonly #log: Logger

  constructor(log: Logger) {
    this.#log = log
  }

  get size(): number {
    return this.#all.size
  }

  /** Answers how to end it. */
  add(ref: Ref, subscriber: Subscriber, known: Membership | undefined): () => void {
    const subscription: Subscription = { ref, subscriber, told: undefined }
    this.#all.add(subscription)
    if (known) this.#tell(subscription, known)
    return () => void this.#all.delete(subscription)
  }

  /** Those who are there now: a subscriber may make and end others. */
  tellAll(membership: Membership): void {
    for (const subscription of [...this.#all]) this.#tell(subscription, membership)
  }

  clear(): void {
    this.#all.clear()
  }

  #tell(subscription: Subscription, membership: Membership): void {
    const { ref, subscriber, told } = subscription
    if (told === membership.version || !this.#all.has(subscription)) return
    subscription.told = membership.version
    try {
      subscriber({ ...membership, ref })
    } catch (err) {
      this.#log.error({ role: membership.role, err }, 'a subscriber to the membership failed')
    }
  }
}
