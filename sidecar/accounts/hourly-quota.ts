import { isoTime } from '../core/clock.ts'
import { repeatOnConflict } from '../couch/repeat-on-conflict.ts'
import type { Documents } from '../couch/documents.ts'
import { mailboxHashOf } from './owner.ts'

const HOUR_MS = 60 * 60 * 1000
/** So many may take at once. */
const TRIES = 50

/** Beside one sender who names a mailbox as often as he may there is room for so many others. */
const SENDERS = 4

interface Line {
  readonly key: string
  readonly at: string
  /** Who has asked for it, where that is counted. */
  readonly by?: string
}

/** A mail that is asked for. */
export interface Wanted {
  readonly owner: string
  readonly key: string
  /** Who asks, as far as that is known. */
  readonly by?: string | undefined
}

/**
 * Counts the mails to a mailbox. False if one sender has had that many sent there within the last hour, or all together a few
 * times as many: so a stranger who names an address again and again does not keep its owner from being mailed.
 */
export const takeMailQuota = (documents: Documents, { owner, key, by }: Wanted, limit: number, now: number) =>
  write(documents, `mails:${mailboxHashOf(owner)}`, now, (lines) => {
    const others = without(lines, [key])
    const isNew = others.length === lines.length
    const isFull = others.length >= limit * SENDERS || others.filter((line) => line.by === by).length >= limit
    return isNew && isFull ? undefined : [...others, { key, at: isoTime(now), ...(by !== undefined && { by }) }]
  })

/**
 * Counts the mails of the last hour in one small document of this id, so that all workers count together and a restart
 * forgets nothing. Taking twice with one key counts once, from the last time.
 *
 * @returns false if there were as many as allowed
 */
export const takeQuota = (documents: Documents, id: string, key: string, limit: number, now: number) =>
  takeQuotas(documents, id, [key], limit, now)

/** As `takeFrom`, for all of these keys or none of them. */
export const takeQuotas = (documents: Documents, id: string, keys: readonly string[], limit: number, now: number) =>
  write(documents, id, now, (lines) => {
    const news = keys.filter((key) => !lines.some((line) => line.key === key))
    if (news.length > 0 && lines.length + news.length > limit) return undefined
    return [...without(lines, keys), ...keys.map((key) => ({ key, at: isoTime(now) }))]
  })

/** What was taken, and not used. */
export const giveBackQuota = (documents: Documents, id: string, key: string, now: number) =>
  write(documents, id, now, (lines) => without(lines, [key]))

const without = (lines: readonly Line[], keys: readonly string[]) => lines.filter(({ key }) => !keys.includes(key))

/** False where `next` makes nothing. */
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
    const docstate = { state: 'counting', timeout_at: isoTime(now + HOUR_MS) } // none of these counts any more then
    await documents.put({ ...ledger, _id, type: 'mail_ledger', state: 'counting', mails, docstate })
    return true
  })
}
