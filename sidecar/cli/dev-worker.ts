/** The child process of `dev`: runs like `start`, until a file is saved. */
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { checkTemplates } from '../channels/check-templates.ts'
import type { Config } from '../config.ts'
import { systemClock } from '../core/clock.ts'
import type { LoadedHandlers } from '../docstate/handlers.ts'
import { loadTemplates } from '../mail/templates.ts'
import { runSidecar, type Addresses } from '../sidecar.ts'
import { withWebhooks } from '../webhooks/bind-webhooks.ts'
import { deploy } from './deploy.ts'
import { showDevLines } from './dev-log.ts'
import { loadHandlersFor } from './load-handlers.ts'
import { checkAll, hideCredentials, pageLine, userOption } from './start.ts'
import type { Terminal } from './terminal.ts'

/** Message of `dev` that lets the worker continue. */
export interface Go {
  /** True if no worker has run before. */
  readonly isFirst: boolean
  /** True if the server is the embedded one. */
  readonly isEmbedded: boolean
}

/** Loads the handlers and reports to `dev`. Continues when `dev` reports that the previous worker has ended. */
export async function runDevWorker(terminal: Terminal, config: Config, version: string): Promise<void> {
  const log = await terminal.createLog(config.logLevel, showDevLines(terminal))
  const [handlers, templates] = await checkAll([
    () => loadHandlersFor(config),
    () => loadTemplates(config.mailTemplates),
    () => checkTemplates(config.channelDdocs),
  ])
  const stopping = new AbortController()
  const stop = () => stopping.abort(new Error('dev stops this worker'))
  terminal.signal.addEventListener('abort', stop, { once: true })
  process.once('disconnect', stop)
  process.send?.('loaded')
  const said = once(process, 'message', { signal: stopping.signal }) as Promise<[Go]>
  const go = await said.then(([first]) => first).catch(() => undefined)
  if (!go) return // stopped before the message came

  await deploy({ ...terminal, print: () => undefined, redraw: undefined }, config, { diskCheck: true })
  await withWebhooks(handlers, config, version, (bound) =>
    runSidecar(
      {
        ...{ version, config, handlers: bound, templates, log },
        ...{ clock: systemClock, random: Math.random },
        onListening(addresses) {
          if (go.isFirst) terminal.print(devBanner(addresses, config, handlers, { ...go, version }))
          else terminal.print(`loaded again: ${namesOf(handlers)}`)
        },
      },
      stopping.signal,
    ),
  )
}

const namesOf = ({ registrations, shadows, schedules }: LoadedHandlers): string =>
  [
    ...[...registrations, ...shadows].map(
      ({ type, state, mode, options }) => `${type}/${state} (${options.shadow ? 'shadow' : mode})`,
    ),
    ...schedules.map(({ name, cron }) => `${name} (${cron})`),
  ].join(', ')

interface BannerOptions {
  readonly version: string
  readonly isEmbedded: boolean
}

/** Text with the addresses, and a command for a first document. */
export function devBanner(
  addresses: Addresses,
  config: Config,
  handlers: LoadedHandlers,
  about: BannerOptions,
): string {
  const { couch, mail, sidecar } = addresses
  const { version, isEmbedded } = about
  const url = isEmbedded ? couch.url : hideCredentials(couch.url)
  const curl = `curl -X POST ${isEmbedded ? '' : userOption(couch.url)}${url}`
  const database = config.databases.find((name) => !/[*?]/.test(name))
  const lines = [
    `couchdb-sidecar ${version}, for development`,
    '',
    `  Handlers  ${namesOf(handlers)}`,
    `  Databases ${config.databases.join(', ')}`,
    `  CouchDB   ${url}${isEmbedded ? '   embedded server, in memory: gone when this ends' : ''}`,
    ...(mail?.page === undefined ? [] : [`  Mails     ${mail.page}`]),
    pageLine(sidecar),
    '',
    ...(database === undefined
      ? []
      : [
          'Write a document, in another terminal:',
          '',
          `  ${curl}/${encodeURIComponent(database)} ${bodyOf(handlers)}`,
          '',
        ]),
    'When you save a file, the handlers are loaded again. Ctrl-C stops.',
    '',
  ]
  return lines.join('\n')
}

/** Options of `curl` for a document: from the file with the name of its type, if that file exists. */
function bodyOf({ machines, registrations }: LoadedHandlers): string {
  const first = registrations.find(({ type, state }) => machines[type]?.[state]?.create) ?? registrations[0]
  const { type = 'order', state = 'new' } = first ?? {}
  const file = `${type}.json`
  return `-H 'Content-Type: application/json' -d ${existsSync(file) ? `@${file}` : `'${JSON.stringify({ type, state })}'`}`
}
