import { ClientError } from './errors.ts'

/**
 * The absolute address in an option, without a slash at its end. In browsers it may be relative to the page. PouchDB
 * would take a relative address for the name of a local database.
 *
 * @throws ClientError `bad_argument`
 */
export function addressOf(option: 'inbox' | 'couchdb', text: string): string {
  const { location } = globalThis as { readonly location?: Location }
  const url = urlOf(text, location?.href)
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url.href.replace(/\/$/, '')
  const relative = location ? ' or one relative to this page' : ''
  throw new ClientError(
    'bad_argument',
    `${option}: expected an http or https address${relative}, got ${JSON.stringify(text)}`,
  )
}

function urlOf(text: string, base: string | undefined): URL | undefined {
  try {
    return new URL(text, base)
  } catch {
    return undefined
  }
}
