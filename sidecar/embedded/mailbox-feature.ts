import { Hono, type MiddlewareHandler } from 'hono'
import { html } from 'hono/html'
import { secureHeaders } from 'hono/secure-headers'
import type { CaughtMail, MailCatcher } from './start.ts'
import { HttpError } from '../http/http-errors.ts'
import type { Feature } from '../feature.ts'

/**
 * Shows the caught mails. `GET /` lists them, the newest first; `GET /{id}` shows one; `GET /api/mails` returns all as
 * JSON. Works at any mount path.
 *
 * A message is untrusted text: all of it is escaped, and its HTML is shown in a sandboxed frame. The page allows no
 * script and loads only a style sheet. Messages contain confirm links, so the page answers only to the names of this
 * machine.
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

/** Links of the HTML open in a new page outside the frame's sandbox, so that its forms work. */
const message = (mail: CaughtMail, base: string) =>
  html`<p><a href="${base || '/'}">All mails</a></p>
    <p>From ${mail.from} to ${mail.to.join(', ')}, ${mail.receivedAt}<br />${mail.messageId}</p>
    <pre>${linked(mail.text)}</pre>
    ${mail.html && frame(`<base target="_blank">${mail.html}`)}`

const frame = (content: string) =>
  html`<iframe title="HTML" sandbox="allow-popups allow-popups-to-escape-sandbox" srcdoc="${content}"></iframe>`

/** Turns the web addresses of a text into links. */
const linked = (text: string) =>
  text
    .split(/(https?:\/\/[^\s<>"]+)/)
    .map((part, at) => (at % 2 === 1 ? html`<a href="${part}" rel="noreferrer" target="_blank">${part}</a>` : part))

/**
 * Answers only requests to this machine's own names, at any port. Another site can give 127.0.0.1 a name of its own
 * (DNS rebinding), and a browser then takes both for one origin. But the browser sends that name as `Host`.
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
  /** Undefined if the sidecar sends its mails to a mail server. */
  readonly catcher: MailCatcher | undefined
  readonly config: { readonly host: string; readonly publicUrl: string | undefined }
}

/** Serves the mails that the embedded catcher has caught. */
export const mailboxFeature = (options: MailboxOptions): Feature =>
  options.catcher && showsMails(options) ? { routes: [new Hono().route(PATH, mailboxPage(options.catcher))] } : {}

/** URL of that page; undefined if it is not served. */
export const mailboxUrl = (options: MailboxOptions, base: string): string | undefined =>
  showsMails(options) ? `${base}${PATH}` : undefined

/** Mails contain confirm links: only this machine may see them, so no page where a proxy opens the sidecar. */
const showsMails = ({ catcher, config: { host, publicUrl } }: MailboxOptions): boolean =>
  catcher !== undefined &&
  publicUrl === undefined &&
  (host === 'localhost' || host === '::1' || host.startsWith('127.'))
