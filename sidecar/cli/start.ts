import { checkTemplates } from '../channels/check-templates.ts'
import type { Config } from '../config.ts'
import { checkAll } from '../core/check-all.ts'
import { systemClock } from '../core/clock.ts'
import { listDoubts } from '../docstate/check-machines.ts'
import { loadHandlers } from '../load-handlers.ts'
import { loadTemplates } from '../mail/templates.ts'
import { runSidecar } from '../sidecar.ts'
import { banner } from './banner.ts'
import { endedNode } from './ended-node.ts'
import type { Terminal } from './terminal.ts'

/** Runs until the signal. The banner is for people: on a terminal, and wherever something embedded needs its address. */
export async function start(terminal: Terminal, config: Config, version: string): Promise<void> {
  const log = terminal.createLog(config.logLevel)
  const [handlers, templates] = await checkAll([
    () => loadHandlers(config.handlers),
    () => loadTemplates(config.mailTemplates),
    () => checkTemplates(config.channelDdocs),
  ])
  const ended = endedNode(process.versions.node, systemClock.now())
  for (const doubt of [...(ended ? [ended] : []), ...listDoubts(handlers)]) log.warn(doubt)
  const tell = () =>
    log.info({ graceMs: config.graceMs }, 'stopping: running handlers may end; told again it ends at once')
  terminal.signal.addEventListener('abort', tell, { once: true })
  await runSidecar(
    {
      version,
      config,
      handlers,
      templates,
      clock: systemClock,
      random: Math.random,
      log,
      onListening(addresses) {
        log.info({ url: addresses.sidecar, version, worker: config.name }, 'listening')
        if (addresses.mail && !addresses.couch.embedded) {
          const { page, smtpUrl } = addresses.mail
          log.warn({ caught: page ?? smtpUrl }, 'SMTP_URL is not set: mails are caught here, and nobody gets them')
        }
        if (terminal.isTTY || addresses.couch.embedded) terminal.print(banner(addresses, config, version))
      },
    },
    terminal.signal,
  )
  log.info('stopped')
}
