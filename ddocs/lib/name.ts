/**
 * Checks names that a client chooses, and that a mail shows to another person. People trust a mail by its sender, so a
 * name must not add a message to it. It may hold no link, no address, and not the code that the reader reads off the
 * device.
 */
import { quote, type Doc } from './document.ts'
import { textFaults } from './shape.ts'

/** Invisible characters, which turn or split visible text. */
const INVISIBLE =
  /[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]/g
/** The zero of each script; its other nine digits follow. */
const ZEROS = [0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6].concat(
  ...[0xe50, 0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0xff10],
)

const LINK =
  /[a-z][a-z0-9+.-]*:\/\/|\b(?:mailto|tel|sms|data|javascript):|\bwww\b|[^\s@]\s*@\s*[^\s@]|[^\s.]\.[^\s.\d]{2}|\d+\.\d+\.\d+\.\d+/

/** Faults of a name, as sentences. */
export function nameFaults(doc: Doc, field: string, max: number, code?: unknown): string[] {
  const faults = textFaults(doc, field, max)
  if (faults.length > 0) return faults
  const name = folded(String(doc[field]))
  if (LINK.test(name))
    faults.push(`${field}: expected no link and no address (put a space after a dot), got ${quote(doc[field])}`)
  if (typeof code === 'string' && containsCode(name, code))
    faults.push(`${field}: expected a name without the device_code`)
  return faults
}

/** Faults of a device's code. The mail shows the owner's address and the device's id, so neither may hold the code. */
export function codeFaults({ _id, owner, device_code: code }: Doc): string[] {
  const words = folded(`${String(_id)} ${String(owner)}`).split(/[^a-z0-9]+/)
  const isShown = typeof code === 'string' && words.indexOf(folded(code)) >= 0
  return isShown ? ['device_code: expected one that is no word of the address or of the _id'] : []
}

/** Text as a reader sees it: without invisible characters, in lower case, with ASCII digits, dots and `@`. */
function folded(text: string): string {
  const { normalize } = text as { normalize?: (form: string) => string } // not everywhere CouchDB runs this
  return (normalize ? normalize.call(text, 'NFKC') : text)
    .replace(INVISIBLE, '')
    .replace(/[^\u0000-\u007f]/g, digitOf)
    .replace(/[\u2024\u3002\uff0e\uff61]/g, '.')
    .replace(/[\ufe6b\uff20]/g, '@')
    .toLowerCase()
}

function digitOf(character: string): string {
  const point = character.charCodeAt(0)
  const zero = ZEROS.filter((first) => point >= first && point < first + 10)[0]
  return zero === undefined ? character : String(point - zero)
}

/** Whether a name holds the code, even with other characters between its parts. */
function containsCode(name: string, code: string): boolean {
  const plain = folded(code).replace(/[^a-z0-9]/g, '')
  const isNumber = /^\d+$/.test(plain)
  return plain !== '' && name.replace(isNumber ? /\D/g : /[^a-z0-9]/g, '').indexOf(plain) >= 0
}
