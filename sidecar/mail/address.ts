import { domainToASCII, domainToUnicode } from 'node:url'

/**
 * Pattern of an address: one mailbox, without comments, quotes, lists or groups. So no parser on the way can read two
 * recipients or a header from an address. Letters of all scripts are allowed.
 */
const LOCAL = String.raw`[^\s@<>()[\]\\,;:"\p{C}]{1,64}`
const DOMAIN = String.raw`[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}.-]{0,251}[\p{L}\p{M}\p{N}])?`
const ADDRESS = new RegExp(`^${LOCAL}@${DOMAIN}$`, 'u')

export const isAddress = (text: string): boolean => text.length <= 254 && ADDRESS.test(text) && !text.includes('..')

export interface Sender {
  readonly name: string
  readonly address: string
}

/** Reads `sidecar@example.com` or `Sidecar <sidecar@example.com>`; `undefined` for anything else. */
export function parseSender(text: string): Sender | undefined {
  const [, name = '', address = text] = /^([^<>"\p{Cc}]*)<([^<>]*)>$/u.exec(text) ?? []
  return isAddress(address) ? { name: name.trim(), address } : undefined
}

export const domainOf = (address: string): string => address.slice(address.lastIndexOf('@') + 1)

/** The address for mail servers, with the domain in ASCII: `ann@xn--mnchen-3ya.de`. */
export const wireAddress = (address: string): string => withDomain(address, domainToASCII)

/** The address for people, with the domain in its own letters: `ann@münchen.de`, however it was written. */
export const readableAddress = (address: string): string =>
  withDomain(address, (domain) => {
    const ascii = domainToASCII(domain)
    const readable = domainToUnicode(ascii)
    return domainToASCII(readable) === ascii ? readable : ascii
  })

/** Changes an international domain. Any other text stays as it is: node would read more from it than a domain. */
function withDomain(address: string, change: (domain: string) => string): string {
  const domain = domainOf(address)
  if (!isAddress(address) || !INTERNATIONAL.test(domain)) return address
  return address.slice(0, -domain.length) + (change(domain) || domain)
}

const INTERNATIONAL = /[^\0-\x7f]|(^|\.)xn--/i
