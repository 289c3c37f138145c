import type { Config } from '../config.ts'
import type { Addresses } from '../sidecar.ts'

/** What runs where, and the next command to paste. */
export function banner({ sidecar, couch, mail }: Addresses, { controlDb, smtpUrl }: Config, version: string): string {
  const database = couch.embedded ? couch.url : hideCredentials(couch.url)
  const device = { type: 'device', state: 'new', owner: 'you@example.com', device_code: '1234', name: 'My phone' }
  const lines = [
    `couchdb-sidecar ${version}`,
    '',
    `  Sidecar   ${sidecar}/_up`,
    `  CouchDB   ${database}${couch.embedded ? '   embedded server, in memory: gone when this ends' : ''}`,
    `  Mail      ${mail ? (mail.page ?? mail.smtpUrl) : hideCredentials(smtpUrl ?? '')}${mail ? catcherNote(mail.page) : ''}`,
    '',
    'Register a device: paste this into another terminal,',
    '',
    `  curl -X POST ${couch.embedded ? '' : userOption(couch.url)}${database}/${encodeURIComponent(controlDb)} -H 'Content-Type: application/json' \\`,
    `    -d '${JSON.stringify(device)}'`,
    '',
    mail?.page
      ? `then open ${mail.page}, follow the link in the mail, and type the device's code, 1234.`
      : "then open the owner's mail, follow its link, and type the device's code, 1234.",
    'The page shows the credentials with which the device may replicate. Ctrl-C stops.',
    '',
  ]
  return lines.join('\n')
}

/** With it `curl` asks for the password. */
function userOption(url: string): string {
  const user = decodeURIComponent(new URL(url).username)
  return user && `-u '${user.replaceAll("'", "'\\''")}' `
}

const catcherNote = (page: string | undefined) =>
  page === undefined
    ? '   embedded mail catcher; it shows no mails to a network: set SMTP_URL'
    : '   embedded mail catcher: nothing leaves this machine'

function hideCredentials(url: string): string {
  if (url === '') return ''
  const shown = new URL(url)
  shown.username = shown.password = ''
  return shown.href.replace(/\/$/, '')
}
