import { Hono } from 'hono'
import type { Feature } from '../feature.ts'
import { mailboxPage } from './mailbox-page.ts'
import type { MailCatcher } from './start.ts'

const PATH = '/_mail'

export interface MailboxOptions {
  /** Undefined where the sidecar sends its mails to a mail server. */
  readonly catcher: MailCatcher | undefined
  readonly config: { readonly host: string; readonly publicUrl: string | undefined }
}

/** The page of the mails that the embedded catcher has caught. */
export const mailboxFeature = (options: MailboxOptions): Feature =>
  options.catcher && showsMails(options) ? { routes: [new Hono().route(PATH, mailboxPage(options.catcher))] } : {}

/** Where that page is; undefined if it is not served. */
export const mailboxUrl = (options: MailboxOptions, base: string): string | undefined =>
  showsMails(options) ? `${base}${PATH}` : undefined

/** Mails hold links that confirm: this machine alone may see them, so not where a proxy opens the sidecar to others. */
const showsMails = ({ catcher, config: { host, publicUrl } }: MailboxOptions): boolean =>
  catcher !== undefined &&
  publicUrl === undefined &&
  (host === 'localhost' || host === '::1' || host.startsWith('127.'))
