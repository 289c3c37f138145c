import { isoTime } from '../core/clock.ts'
import { repeatOnConflict } from '../couch/repeat-on-conflict.ts'
import type { Documents } from '../couch/documents.ts'
import { mailboxHashOf } from './owner.ts'

const HOUR_MS = 60 * 60 * 1000
/** Maximum tries of a write: many workers may take from one quota at once. */
const TRIES = 50

/** Limit of all senders to one mailbox, as a multiple of the limit of one sender. */
const SENDERS = 4

interface Line {
  readonly key: string
  readonly at: string
  /** The sender that requested the mail, if senders are counted. */
  readonly by?: string
}

/** A requested mail. */
export interface Wanted {
  readonly owner: string
  readonly key: string
  /** The sender that requests the mail, if known. */
  readonly by?: string | undefined
}

/**
 * Counts a mail to a mailbox. False if the sender requested `limit` mails within the last hour, or all senders together
 * `SENDERS` times as many. So a stranger who repeats an address cannot block mails to its owner.
 */
export const takeMailQuota = (documents: Documents, { owner, key, by }: Wanted, limit: number, now: number) =>
  write(documents, `mails:${mailboxHashOf(owner)}`, now, (lines) => {
    const others = without(lines, [key])
    const isNew = others.length === lines.length
    const isFull = others.length >= limit * SENDERS || others.filter((line) => line.by === by).length >= limit
    return isNew && isFull ? undefined : [...others, { key, at: isoTime(now), ...(by !== undefined && { by }) }]
  })

/**
 * Takes one mail from an hourly quota. One small document with this id holds the mails of the last hour. So all workers
 * share the count, and a restart keeps it. Taking twice with one key counts once, from the last time.
 *
 * @returns false if the quota is used up
 */
export const takeQuota = (documents: Documents, id: string, key: string, limit: number, now: number) =>
  takeQuotas(documents, id, [key], limit, now)

/** Like `takeQuota`, for all of these keys or for none. */
export const takeQuotas = (documents: Documents, id: string, keys: readonly string[], limit: number, now: number) =>
  write(documents, id, now, (lines) => {
    const news = keys.filter((key) => !lines.some((line) => line.key === key))
    if (news.length > 0 && lines.length + news.length > limit) return undefined
    return [...without(lines, keys), ...keys.map((key) => ({ key, at: isoTime(now) }))]
  })

/** Returns an unused mail to the quota. */
export const giveBackQuota = (documents: Documents, id: string, key: string, now: number) =>
  write(documents, id, now, (lines) => without(lines, [key]))

const without = (lines: readonly Line[], keys: readonly string[]) => lines.filter(({ key }) => !keys.includes(key))

/** Writes the lines that `next` returns. False, without a write, if `next` returns undefined. */
async function write(
  documents: Documents,
  _id: string,
  now: number,
  next: (lines: readonly Line[]) => readonly Line[] | undefined,
): Promise<boolean> {
  return repeatOnConflict(TRIES, async () => {
    const ledger = await documents.find(_id)
    const mails = next(((ledger?.mails ?? []) as Line[]).filter(({ at }) => Date.parse(at) > now - HOUR_MS))
    if (!mails) return false
    const docstate = { state: 'counting', timeout_at: isoTime(now + HOUR_MS) } // by then no line counts any more
    await documents.put({ ...ledger, _id, type: 'mail_ledger', state: 'counting', mails, docstate })
    return true
  })
}
