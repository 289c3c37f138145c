import { Hono, type MiddlewareHandler } from 'hono'
import { html } from 'hono/html'
import { secureHeaders } from 'hono/secure-headers'
import type { CaughtMail, MailCatcher } from './start.ts'
import { HttpError } from '../http/http-errors.ts'
import type { Feature } from '../feature.ts'

/**
 * Shows what the mail catcher has caught: `GET /` lists the messages, the newest first; `GET /{id}` shows one;
 * `GET /api/mails` gives all of them as JSON. Works wherever it is mounted.
 *
 * A message is text from anywhere: everything is escaped, its HTML is shown in a sandboxed frame, and the page allows
 * no script and loads nothing. It holds links that confirm, so it answers to the names of this machine only.
 *
 * @example
 * app.route('/_mail', mailboxPage(catcher))
 */
export function mailboxPage(catcher: MailCatcher): Hono {
  const newestFirst = () => catcher.mails.toReversed()
  const baseOf = (path: string) => path.replace(/\/\d*$/, '')
  return new Hono()
    .use(
      secureHeaders({
        contentSecurityPolicy: {
          defaultSrc: ["'none'"],
          styleSrc: ["'self'", "'unsafe-inline'"],
          formAction: ["'none'"],
        },
        strictTransportSecurity: false,
      }),
    )
    .use(localOnly())
    .get('/api/mails', (c) => c.json(newestFirst()))
    .get('/:id{[0-9]+}', (c) => {
      const mail = catcher.mails.find(({ id }) => id === Number(c.req.param('id')))
      return mail ? c.html(page(mail.subject, message(mail, baseOf(c.req.path)))) : c.notFound()
    })
    .get('/', (c) => c.html(page('Mails', list(newestFirst(), baseOf(c.req.path)))))
}

type Html = ReturnType<typeof html>

const page = (title: string, body: Html) =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title} – couchdb-sidecar</title>
        <link rel="stylesheet" href="/_page/page.css" />
      </head>
      <body>
        <header>
          <strong>couchdb-sidecar</strong>
          <nav aria-label="Pages">
            <ul>
              <li><a href="/">Overview</a></li>
              <li><a href="/_mail" aria-current="page">Mails</a></li>
            </ul>
          </nav>
        </header>
        <main>
          <h1>${title}</h1>
          ${body}
        </main>
      </body>
    </html>`

const list = (mails: readonly CaughtMail[], base: string) =>
  mails.length === 0
    ? html`<p>No mail yet. Reload the page to look again.</p>`
    : html`<div class="scrolls" tabindex="0" role="region" aria-label="Mails">
        <table>
          <thead>
            <tr>
              <th scope="col">Mail</th>
              <th scope="col">To</th>
              <th scope="col">When</th>
            </tr>
          </thead>
          <tbody>
            ${mails.map(
              (mail) =>
                html`<tr>
                  <th scope="row"><a href="${base}/${mail.id}">${mail.subject}</a></th>
                  <td>${mail.to.join(', ')}</td>
                  <td>${mail.receivedAt}</td>
                </tr>`,
            )}
          </tbody>
        </table>
      </div>`

/** The links of its HTML open in a page of their own, which is free of the frame's sandbox: its forms work. */
const message = (mail: CaughtMail, base: string) =>
  html`<p><a href="${base || '/'}">All mails</a></p>
    <p>From ${mail.from} to ${mail.to.join(', ')}, ${mail.receivedAt}<br />${mail.messageId}</p>
    <pre>${linked(mail.text)}</pre>
    ${mail.html && frame(`<base target="_blank">${mail.html}`)}`

const frame = (content: string) =>
  html`<iframe title="HTML" sandbox="allow-popups allow-popups-to-escape-sandbox" srcdoc="${content}"></iframe>`

/** The text with its web addresses as links. */
const linked = (text: string) =>
  text
    .split(/(https?:\/\/[^\s<>"]+)/)
    .map((part, at) => (at % 2 === 1 ? html`<a href="${part}" rel="noreferrer" target="_blank">${part}</a>` : part))

/**
 * Answers only where the caller has asked for this machine by one of its own names, at any port. A page of another site
 * reaches a server on 127.0.0.1 by a name of its own that it makes lead there (DNS rebinding), and its browser then
 * takes both for one origin; but it sends that name as `Host`.
 */
const localOnly = (): MiddlewareHandler =>
  async function localOnly(c, next) {
    const host = c.req.header('host') ?? new URL(c.req.url).host
    if (!LOCAL.test(host)) throw new HttpError(403, 'forbidden', 'This is shown at localhost only.')
    await next()
  }

const LOCAL = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i

const PATH = '/_mail'

interface MailboxOptions {
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
