/** A value as it may be printed. */
export function mask(text: string, secret: 'url' | 'word' | undefined): string {
  switch (secret) {
    case undefined:
      return text
    case 'word':
      return '***'
    case 'url':
      return maskUrl(text)
  }
}

/**
 * An address without its password, whatever it looks like: up to the last `@` everything is taken for credentials,
 * because a password with special characters in it makes an address that no parser reads as it was meant. What
 * follows a `?` may hold secrets too.
 */
function maskUrl(text: string): string {
  const [, scheme = '', rest = ''] = /^([a-z][a-z0-9+.-]*:\/*)?(.*)$/is.exec(text) ?? []
  const at = rest.lastIndexOf('@')
  const host = (at === -1 ? rest : `***@${rest.slice(at + 1)}`).replace(/\?.*$/s, '?***')
  return scheme + host
}
