/**
 * Escapes invisible characters for output. Documents and answers of servers hold texts of strangers. On a terminal a
 * control character could move the cursor or hide a line. A character for the writing direction could reverse a name.
 * Output shows them as escapes, `\u001b`.
 */

/** Controls, formats, lone surrogates, separators of lines and paragraphs; not the joiners of scripts and emoji. */
const UNSEEN = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

const escaped = (text: string): string =>
  Array.from({ length: text.length }, (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')

/** Escapes a text of several lines. JSON keeps its value. */
export const printable = (text: string): string =>
  text.replace(UNSEEN, (one) => (/[\n\t]/.test(one) ? one : escaped(one)))

/** Escapes a text to one line, line breaks included. */
export const oneLine = (text: string): string => text.replace(UNSEEN, (one) => (one === '\n' ? '\\n' : escaped(one)))
