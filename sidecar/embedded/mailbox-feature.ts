import { Hono } from 'hono'
import { html } from 'hono/html'
import { secureHeaders } from 'hono/secure-headers'
import { localOnly } from '../http/local-only.ts'
import type { CaughtMail, MailCatcher } from './start.ts'

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
        contentSecurityPolicy: { defaultSrc: ["'none'"], styleSrc: ["'unsafe-inline'"], formAction: ["'none'"] },
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
        <meta name="viewport" content="width=device-width" />
        <title>${title}</title>
        <style>
          body {
            font: 1rem/1.5 system-ui;
            max-width: 50rem;
            margin: 2rem auto;
            padding: 0 1rem;
          }
          pre {
            white-space: pre-wrap;
            overflow-wrap: anywhere;
          }
          iframe {
            width: 100%;
            height: 30rem;
            border: 1px solid #ccc;
          }
        </style>
      </head>
      <body>
        <h1>${title}</h1>
        ${body}
      </body>
    </html>`

const list = (mails: readonly CaughtMail[], base: string) =>
  mails.length === 0
    ? html`<p>No mail yet. Reload the page to look again.</p>`
    : html`<ol reversed>
        ${mails.map(
          (mail) =>
            html`<li>
              <a href="${base}/${mail.id}">${mail.subject}</a> to ${mail.to.join(', ')}, ${mail.receivedAt}
            </li>`,
        )}
      </ol>`

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
