/**
 * Limits the device codes that are tried with a valid link: only they can be guessed. Each code, also the right one,
 * takes one of five places before it is compared. So at most five codes are compared, however many arrive at once.
 *
 * The codes of a device are in a document of the sidecar's own. Clients write the device's document, and might leave
 * the codes out. A code takes one place: another confirm document, or a second run of one, makes no further guess. The
 * code keeps its place until the link that it was tried with expires. A request for another mail frees no place.
 */
import type { StoredDoc } from '../couch/documents.ts'
import { repeatOnConflict } from '../couch/repeat-on-conflict.ts'
import { hashCode } from './codes.ts'
import type { Documents } from '../couch/documents.ts'
import { guessesIdOf } from './device-names.ts'

export interface TriedCode {
  /** Hash of the code that was tried. */
  readonly guess: string
  /** Expiry of the link that the code was tried with. */
  readonly until: string
}

const MOST_CODES = 5
const TRIES = 10

/** Codes that have a place now. */
export const readTriedCodes = async (
  documents: Documents,
  deviceId: string,
  now: number,
): Promise<readonly TriedCode[]> => triedCodesIn(await documents.find(guessesIdOf(deviceId)), now)

/** Returns all codes that have a place now, including this one if a place was free. */
export async function countAttempt(
  documents: Documents,
  deviceId: string,
  { code, until }: { readonly code: string; readonly until: string },
  now: number,
): Promise<readonly TriedCode[]> {
  const _id = guessesIdOf(deviceId)
  const guess = hashCode(code)
  return repeatOnConflict(TRIES, async () => {
    const stored = await documents.find(_id)
    const guesses = triedCodesIn(stored, now)
    const others = guesses.filter((known) => known.guess !== guess)
    if (others.length >= MOST_CODES || guesses.some((known) => known.guess === guess && known.until >= until)) {
      return guesses
    }
    const more = [...others, { guess, until }]
    const timeout_at = more
      .map((one) => one.until)
      .sort()
      .at(-1)
    const docstate = { state: 'counting', timeout_at } // by then no code counts any more
    await documents.put({ ...stored, _id, type: 'guesses', state: 'counting', guesses: more, docstate })
    return more
  })
}

export const isCounted = (guesses: readonly TriedCode[], code: string): boolean =>
  guesses.some(({ guess }) => guess === hashCode(code))

/** True if no place is left, and the right code has none. */
export const isExhausted = (guesses: readonly TriedCode[], rightCode: string): boolean =>
  guesses.length >= MOST_CODES && !isCounted(guesses, rightCode)

/** The `error` of a device whose places are exhausted. */
export const tooManyAttempts = (guesses: readonly TriedCode[]) => ({
  code: 'too_many_attempts',
  reason: `its code was wrong too often; register it again, or request another mail after ${firstEnd(guesses)}`,
})

const firstEnd = (guesses: readonly TriedCode[]): string => guesses.map(({ until }) => until).sort()[0]!

/** The unexpired codes in a document. An admin may have written any value. */
function triedCodesIn(stored: StoredDoc | undefined, now: number): readonly TriedCode[] {
  const guesses: unknown = stored?.guesses
  return Array.isArray(guesses)
    ? guesses.filter((one): one is TriedCode => isTriedCode(one) && Date.parse(one.until) > now)
    : []
}

const isTriedCode = (one: unknown): one is TriedCode => {
  const { guess, until } = (one ?? {}) as Partial<TriedCode>
  return typeof guess === 'string' && typeof until === 'string'
}
