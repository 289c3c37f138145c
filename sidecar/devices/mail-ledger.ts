import { isoTime } from '../core/clock.ts'
import { isCouchError } from '../couch/errors.ts'
import type { Documents } from './documents.ts'
import { ownerHashOf } from './names.ts'

const HOUR_MS = 60 * 60 * 1000
const TRIES = 10

interface Line {
  readonly key: string
  readonly at: string
}

/** Counts the mails to an owner. False if that many have gone to him within the last hour. */
export const takeMail = (documents: Documents, owner: string, key: string, limit: number, now: number) =>
  takeFrom(documents, `mails:${ownerHashOf(owner)}`, key, limit, now)

/**
 * Counts the mails of the last hour in one small document of this id, so that all workers count together and a restart
 * forgets nothing. Taking twice with one key counts once, from the last time.
 *
 * @returns false if there were as many as allowed
 */
export async function takeFrom(
  documents: Documents,
  _id: string,
  key: string,
  limit: number,
  now: number,
): Promise<boolean> {
  for (let tries = 1; ; tries++) {
    const ledger = await documents.find(_id)
    const lines = ((ledger?.mails ?? []) as Line[]).filter(({ at }) => Date.parse(at) > now - HOUR_MS)
    const others = lines.filter((line) => line.key !== key)
    if (others.length === lines.length && lines.length >= limit) return false
    const mails = [...others, { key, at: isoTime(now) }]
    try {
      await documents.put({ ...ledger, _id, type: 'mail_ledger', mails })
      return true
    } catch (thrown) {
      if (!isCouchError(thrown, 'conflict') || tries === TRIES) throw thrown
    }
  }
}
