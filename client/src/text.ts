/** Text that a server takes, as its guard has it. What it would refuse is better told at once: offline, it tells much later. */

/** C0 and C1 controls and the two line separators: nothing that could end a line in a mail or a log. */
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/
/** Half an emoji, as it is left where text was cut: JSON may have it, CouchDB does not take it. */
const HALF = /\p{Surrogate}/u

/** After how many of them, for messages. */
export const LINE = 'characters, none of them half or a control character'

/** Text of 1 to `max` UTF-16 units on one line. */
export const isLine = (text: unknown, max: number): text is string =>
  typeof text === 'string' && text.length > 0 && text.length <= max && !CONTROL.test(text) && isWhole(text)

export const isWhole = (text: string): boolean => !HALF.test(text)

/** Whether all text in it is whole, keys as well. */
export function isWholeIn(value: unknown): boolean {
  if (typeof value === 'string') return isWhole(value)
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([key, inner]) => isWhole(key) && isWholeIn(inner))
}
