import { checkTemplates } from '../channels/check-templates.ts'
import type { Config } from '../config.ts'
import { systemClock } from '../core/clock.ts'
import { listDoubts } from '../docstate/check-machines.ts'
import { loadHandlersFor } from './load-handlers.ts'
import { loadTemplates } from '../mail/templates.ts'
import { runSidecar, type Addresses } from '../sidecar.ts'
import { withWebhooks } from '../webhooks/bind-webhooks.ts'
import type { Terminal } from './terminal.ts'
import { ConfigError } from '../core/errors.ts'

/** Runs until the signal. Prints a banner on a terminal, and where a reader needs the embedded server's address. */
export async function start(terminal: Terminal, config: Config, version: string): Promise<void> {
  const log = await terminal.createLog(config.logLevel)
  const [handlers, templates] = await checkAll([
    () => loadHandlersFor(config),
    () => loadTemplates(config.mailTemplates),
    () => checkTemplates(config.channelDdocs),
  ])
  const ended = endedNode(process.versions.node, systemClock.now())
  for (const doubt of [...(ended ? [ended] : []), ...listDoubts(handlers)]) log.warn(doubt)
  const logStop = () =>
    log.info({ graceMs: config.graceMs }, 'Waiting for running handlers to finish. Press Ctrl-C again to exit now.')
  terminal.signal.addEventListener('abort', logStop, { once: true })
  await withWebhooks(handlers, config, version, (bound) =>
    runSidecar(
      {
        version,
        config,
        handlers: bound,
        templates,
        clock: systemClock,
        random: Math.random,
        log,
        onListening(addresses, problems) {
          log.info({ url: addresses.sidecar, version, worker: config.name }, 'listening')
          if (addresses.mail && !addresses.couch.embedded) {
            const { page, smtpUrl } = addresses.mail
            log.warn(
              { caught: page ?? smtpUrl },
              'SMTP_URL is not set: the mail catcher keeps all mails, none is delivered',
            )
          }
          const show = () => terminal.print(banner(addresses, config, version))
          if (addresses.couch.embedded) void untilNone(problems, terminal.signal).then(show, () => undefined)
          else if (terminal.isTTY) show()
        },
      },
      terminal.signal,
    ),
  )
  log.info('stopped')
}

/** Resolves when there are no problems: a new embedded server has no database yet, and the banner's command needs one. */
async function untilNone(problems: () => readonly string[], signal: AbortSignal): Promise<void> {
  while (problems().length > 0) await systemClock.sleep(50, signal)
}

/** Last day of security fixes per release line (https://github.com/nodejs/Release). Other lines have ended before. */
const LAST_DAYS: Readonly<Record<number, string>> = {
  20: '2026-04-30',
  22: '2027-04-30',
  24: '2028-04-30',
  25: '2026-06-01',
  26: '2029-04-30',
}
const NEWEST = 26
const either = new Intl.ListFormat('en-GB', { type: 'disjunction' }) // `22, 24 or 26`

/** Returns a warning if this version of Node gets no more security fixes. `now` is in milliseconds since the epoch. */
export function endedNode(version: string, now: number): string | undefined {
  const line = parseInt(version)
  const lastDay = LAST_DAYS[line]
  const isNew = line > NEWEST
  if (isNew || (lastDay !== undefined && now < Date.parse(lastDay) + 86_400_000)) return undefined
  const living = Object.keys(LAST_DAYS).filter(
    (one) => Number(one) % 2 === 0 && now < Date.parse(LAST_DAYS[Number(one)]!),
  )
  const since = lastDay === undefined ? '' : ` since ${lastDay}`
  const other = living.length > 0 ? either.format(living) : `${NEWEST + 2} or later`
  return `Node ${version} has had no security fixes${since}: run the sidecar on Node ${other}`
}

/** Text with the addresses and the next steps: for a trial if a part is embedded, otherwise for operation. */
export function banner(addresses: Addresses, config: Config, version: string): string {
  const { sidecar, couch, mail } = addresses
  const database = couch.embedded ? couch.url : hideCredentials(couch.url)
  const lines = [
    `couchdb-sidecar ${version}`,
    '',
    pageLine(sidecar),
    `  CouchDB   ${database}${couch.embedded ? '   embedded server, in memory: gone when this ends' : ''}`,
    `  Mail      ${mail ? (mail.page ?? mail.smtpUrl) : hideCredentials(config.smtpUrl ?? '')}${mail ? catcherNote(mail.page) : ''}`,
    '',
    ...(couch.embedded || mail ? registering(addresses, config, database) : []),
    ...(couch.embedded ? [] : COMMANDS),
    'Ctrl-C stops.',
    '',
  ]
  return lines.join('\n')
}

/** Line of the banner about the operator's page. `sidecar`: URL without a trailing slash. */
export const pageLine = (sidecar: string) =>
  `  Sidecar   ${sidecar}/   open it in a browser to find and retry stuck documents; sign in with a CouchDB account`

/** For any machine that reaches CouchDB, with the settings of the sidecar. */
const COMMANDS = [
  'In another terminal, with the same settings:',
  '',
  '  couchdb-sidecar canary                 test the whole path with a document',
  '  couchdb-sidecar status --stuck         stuck documents, the reasons, and the commands that mend them',
  '  couchdb-sidecar explain <db> <docid>   what happens to one document, and why',
  '',
]

function registering({ couch, mail }: Addresses, { controlDb }: Config, database: string): string[] {
  const device = { type: 'device', state: 'new', owner: 'you@example.com', device_code: '1234', name: 'My phone' }
  return [
    'Register a device: paste this into another terminal,',
    '',
    `  curl -X POST ${couch.embedded ? '' : userOption(couch.url)}${database}/${encodeURIComponent(controlDb)} -H 'Content-Type: application/json' \\`,
    `    -d '${JSON.stringify(device)}'`,
    '',
    mail?.page
      ? `then open ${mail.page}, follow the link in the mail, and type the device's code, 1234.`
      : "then open the owner's mail, follow its link, and type the device's code, 1234.",
    'The page shows the credentials with which the device may replicate.',
    '',
  ]
}

/** This option makes `curl` prompt for the password. */
export function userOption(url: string): string {
  const user = decodeURIComponent(new URL(url).username)
  return user && `-u '${user.replaceAll("'", "'\\''")}' `
}

const catcherNote = (page: string | undefined) =>
  page === undefined
    ? '   embedded mail catcher; it shows no mails to a network: set SMTP_URL'
    : '   embedded mail catcher: nothing leaves this machine'

export function hideCredentials(url: string): string {
  if (url === '') return ''
  const shown = new URL(url)
  shown.username = shown.password = ''
  return shown.href.replace(/\/$/, '')
}

/**
 * Returns the results of all checks. Throws all their faults at once, so that the operator corrects them together.
 *
 * @throws ConfigError, or the first other error
 */
export async function checkAll<const T extends readonly unknown[]>(checks: {
  readonly [K in keyof T]: () => T[K] | Promise<T[K]>
}): Promise<T> {
  const settled = await Promise.allSettled(checks.map(async (check) => check()))
  const thrown = settled.flatMap((result): unknown[] => (result.status === 'rejected' ? [result.reason] : []))
  const faults = thrown.flatMap((error) => {
    if (error instanceof ConfigError) return error.faults
    throw error
  })
  if (faults.length > 0) throw new ConfigError(faults)
  return settled.map((result) => (result as PromiseFulfilledResult<unknown>).value) as unknown as T
}
