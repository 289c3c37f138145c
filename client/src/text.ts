/** Checks text by the server's rules. An error at once is better: offline, the server refuses much later. */

/** C0 and C1 controls and the two line separators, which could end a line in a mail or a log. */
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/
/** Half an emoji, such as in cut text: valid in JSON, but CouchDB refuses it. */
const HALF = /\p{Surrogate}/u

/** Follows the number of characters in messages. */
export const LINE = 'characters, without control characters or unpaired surrogates'

/** Text of 1 to `max` UTF-16 units on one line. */
export const isLine = (text: unknown, max: number): text is string =>
  typeof text === 'string' && text.length > 0 && text.length <= max && !CONTROL.test(text) && isWhole(text)

export const isWhole = (text: string): boolean => !HALF.test(text)

/** Whether all text in a value is whole, keys included. */
export function isWholeIn(value: unknown): boolean {
  if (typeof value === 'string') return isWhole(value)
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([key, inner]) => isWhole(key) && isWholeIn(inner))
}
