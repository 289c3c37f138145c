/** The last attempts to send a mail: kept in memory for the operator's page. Recipients are masked. */
import { z } from 'zod'
import { isoTime, type Clock } from '../core/clock.ts'
import { domainOf } from './address.ts'

const RecentMail = z.object({
  /** ISO 8601. */
  at: z.iso.datetime(),
  /** The document whose handler sends the mail. */
  database: z.string(),
  id: z.string(),
  /** Masked, as `a…@example.com`. */
  to: z.string(),
  /** Why the attempt failed. Absent: the mail server has accepted the mail. */
  failure: z.object({ code: z.string(), reason: z.string() }).optional(),
})

export type RecentMail = Readonly<z.infer<typeof RecentMail>>

const KEPT = 20
/** Maximum length of a reason in characters: reasons travel with heartbeats. */
const MAX_REASON = 200

export class RecentMails {
  readonly #clock: Pick<Clock, 'now'>
  #mails: readonly RecentMail[] = []

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /** The last 20 attempts, the newest first. */
  get all(): readonly RecentMail[] {
    return this.#mails
  }

  add({ to, failure, ...mail }: Omit<RecentMail, 'at'>): void {
    const added: RecentMail = {
      at: isoTime(this.#clock.now()),
      ...mail,
      to: maskedAddress(to),
      ...(failure && { failure: { ...failure, reason: failure.reason.slice(0, MAX_REASON) } }),
    }
    this.#mails = [added, ...this.#mails].slice(0, KEPT)
  }
}

/** `ann@example.com` as `a…@example.com`; a text that is no address as `…`. */
export function maskedAddress(address: unknown): string {
  if (typeof address !== 'string' || !address.includes('@')) return '…'
  return `${[...address][0]!}…@${domainOf(address)}`.slice(0, MAX_REASON)
}

/** The attempts that another worker reports; none if the value has another shape. */
export const recentMailsFrom = (value: unknown): readonly RecentMail[] =>
  z.array(RecentMail).safeParse(value).data ?? []
