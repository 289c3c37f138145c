/**
 * The device codes that were tried with a good link: the one thing that can be guessed. Each takes one of five places
 * before it is compared, the right one too; so no more than five are, however many come at once.
 *
 * They stand in a document of the sidecar's own, one for each device: the device's document is written by clients, who
 * might leave them out. What takes a place is the code, so that neither another confirm document nor a second run of
 * the same one makes another guess of it. It keeps the place as long as the link is good that it was tried with: asking
 * for another mail in between does not free any.
 */
import type { StoredDoc } from '../couch/documents.ts'
import { repeatOnConflict } from '../couch/repeat-on-conflict.ts'
import { hashCode } from './codes.ts'
import type { Documents } from '../couch/documents.ts'
import { guessesIdOf } from './device-names.ts'

export interface TriedCode {
  /** Hash of the code that was tried. */
  readonly guess: string
  /** When the link expires that it was tried with. */
  readonly until: string
}

const MOST_CODES = 5
const TRIES = 10

/** Those that have a place now. */
export const readTriedCodes = async (
  documents: Documents,
  deviceId: string,
  now: number,
): Promise<readonly TriedCode[]> => triedCodesIn(await documents.find(guessesIdOf(deviceId)), now)

/** Resolves with all that have a place now: this one too, if there was one left. */
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
    const docstate = { state: 'counting', timeout_at } // none of these counts any more then
    await documents.put({ ...stored, _id, type: 'guesses', state: 'counting', guesses: more, docstate })
    return more
  })
}

export const isCounted = (guesses: readonly TriedCode[], code: string): boolean =>
  guesses.some(({ guess }) => guess === hashCode(code))

/** No place is left, and the right code has none. */
export const isExhausted = (guesses: readonly TriedCode[], rightCode: string): boolean =>
  guesses.length >= MOST_CODES && !isCounted(guesses, rightCode)

/** Why a device is refused then: the `error` of its document. */
export const tooManyAttempts = (guesses: readonly TriedCode[]) => ({
  code: 'too_many_attempts',
  reason: `its code was typed in wrong too often; register it anew, or ask for another mail after ${firstEnd(guesses)}`,
})

const firstEnd = (guesses: readonly TriedCode[]): string => guesses.map(({ until }) => until).sort()[0]!

/** Whatever an admin may have put there. */
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
