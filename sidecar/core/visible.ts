/**
 * Documents, and answers of servers, hold texts of strangers: on a terminal a control character in them could move the
 * cursor or hide a line, and one for the direction of writing could turn a name around. Such characters are shown as
 * escapes, `\u001b`.
 */

/** Controls, formats, and ends of lines and paragraphs; but for the joiners that scripts and emoji need. */
const UNSEEN = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

const escaped = (text: string): string =>
  Array.from({ length: text.length }, (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')

/** A text of several lines; JSON stays the same value. */
export const printable = (text: string): string =>
  text.replace(UNSEEN, (one) => (/[\n\t]/.test(one) ? one : escaped(one)))

/** In one line, also where there are several. */
export const oneLine = (text: string): string => text.replace(UNSEEN, (one) => (one === '\n' ? '\\n' : escaped(one)))
