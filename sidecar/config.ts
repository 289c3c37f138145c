/**
 * The settings of the process, read once at its start and then handed down as arguments: nothing else in the sidecar
 * looks into the environment. All faults are found before one is reported.
 */
import { hostname } from 'node:os'
import { ConfigError } from './core/errors.ts'
import { defaultOf, infoOf, settingNames, settings, type SettingName, type Settings } from './config/settings.ts'
import { collect, type Found, type Sources } from './config/sources.ts'

export type { Sources } from './config/sources.ts'

export interface Config {
  /** With user name and password in it. Not set: the embedded server. */
  readonly couchdbUrl: string | undefined
  /** Where devices reach CouchDB, without a slash at its end. Not set: at the same address. */
  readonly couchdbPublicUrl: string | undefined
  /** With user name and password in it. Not set: the embedded mail catcher. */
  readonly smtpUrl: string | undefined
  /** 0: any free port. */
  readonly port: number
  readonly host: string
  /** Base of the links in mails, without a slash at its end. Not set: `http://localhost` and the port listened on. */
  readonly publicUrl: string | undefined
  readonly mailFrom: string
  readonly mailTemplates: string | undefined
  /** Mails to one address within an hour. */
  readonly mailsPerOwner: number
  /** Mails by which one owner invites others within an hour. */
  readonly invitesPerOwner: number
  readonly channelsPerOwner: number
  /** Shards (`q`) of databases made for users and channels. */
  readonly shards: number
  /** Folders of design documents for each channel. */
  readonly channelDdocs: readonly string[]
  readonly confirmExpiryMs: number
  /** Documents a minute from one address. 0: no inbox. */
  readonly inboxRate: number
  /** Devices that may wait to be confirmed while the inbox takes others. */
  readonly inboxWaiting: number
  /** In front of the sidecar. */
  readonly proxies: number
  readonly controlDb: string
  /** Names and globs. */
  readonly databases: readonly string[]
  /** Where database events are written. */
  readonly globalChangesDb: string
  /** With which the names of the databases of the history begin; undefined: there is none. */
  readonly historyDb: string | undefined
  readonly historyAgeMs: number
  /** Paths of modules, as they were given. */
  readonly handlers: readonly string[]
  readonly webhookHosts: readonly string[]
  /** The keys of the secrets. */
  readonly webhookKeys: readonly Buffer[]
  readonly name: string
  /** Open to CouchDB at once. */
  readonly connections: number
  readonly reads: number
  /** Bytes of documents in flight at once. */
  readonly memoryBytes: number
  readonly leaseMs: number
  readonly graceMs: number
  readonly logLevel: Settings['SIDECAR_LOG_LEVEL']
}

/**
 * Reads and checks all settings: flags win over the environment, that over the `.env` file, that over the defaults.
 *
 * @throws ConfigError with every fault: the setting, what was expected, what came. Passwords are never in it.
 * @example
 * const config = loadConfig({ env: process.env, flags: { SIDECAR_PORT: '8080' }, envFile: '.env' })
 */
export function loadConfig(sources: Sources): Config {
  const faults: string[] = []
  const found = collect(sources, faults)
  const texts = Object.fromEntries([...found].map(([name, { text }]) => [name, text]))
  faults.push(...credentialFaults(texts))
  const { data: values, error } = settings.safeParse(texts)
  for (const { path, message } of error?.issues ?? []) {
    const name = path[0] as SettingName
    faults.push(`${name}: expected ${message}, got ${shown(name, found.get(name))}`)
  }
  if (!values || faults.length > 0) throw new ConfigError(faults)

  return {
    couchdbUrl: withCredentials(values),
    couchdbPublicUrl: values.COUCHDB_PUBLIC_URL,
    smtpUrl: values.SMTP_URL,
    port: values.SIDECAR_PORT,
    host: values.SIDECAR_HOST,
    publicUrl: values.SIDECAR_PUBLIC_URL,
    mailFrom: values.SIDECAR_MAIL_FROM,
    mailTemplates: values.SIDECAR_MAIL_TEMPLATES,
    mailsPerOwner: values.SIDECAR_MAILS_PER_OWNER,
    invitesPerOwner: values.SIDECAR_INVITES_PER_OWNER,
    channelsPerOwner: values.SIDECAR_CHANNELS_PER_OWNER,
    shards: values.SIDECAR_SHARDS,
    channelDdocs: values.SIDECAR_CHANNEL_DDOCS ?? [],
    confirmExpiryMs: values.SIDECAR_CONFIRM_EXPIRY,
    inboxRate: values.SIDECAR_INBOX_RATE,
    inboxWaiting: values.SIDECAR_INBOX_WAITING,
    proxies: values.SIDECAR_PROXIES,
    controlDb: values.SIDECAR_CONTROL_DB,
    databases: values.SIDECAR_DATABASES ?? [values.SIDECAR_CONTROL_DB],
    globalChangesDb: values.SIDECAR_GLOBAL_CHANGES_DB,
    historyDb: values.SIDECAR_HISTORY_DB,
    historyAgeMs: values.SIDECAR_HISTORY_AGE,
    handlers: values.SIDECAR_HANDLERS ?? [],
    webhookHosts: values.SIDECAR_WEBHOOK_HOSTS ?? [],
    webhookKeys: values.SIDECAR_WEBHOOK_SECRETS ?? [],
    name: values.SIDECAR_NAME ?? hostname(),
    connections: values.SIDECAR_CONNECTIONS,
    reads: values.SIDECAR_READS,
    memoryBytes: values.SIDECAR_MEMORY,
    leaseMs: values.SIDECAR_LEASE,
    graceMs: values.SIDECAR_GRACE,
    logLevel: values.SIDECAR_LOG_LEVEL,
  }
}

function shown(name: SettingName, found: Found | undefined): string {
  if (!found) return 'nothing'
  if (found.fromFile) return `something else in the file ${found.from}`
  return `"${mask(found.text, infoOf(name).secret)}" from ${found.from}`
}

/** User and password belong together, and to one address, in which they may stand instead. */
function credentialFaults(texts: Partial<Record<SettingName, string>>): string[] {
  const { COUCHDB_URL: url, COUCHDB_USER: user, COUCHDB_PASSWORD: password } = texts
  if (!user && !password) return []
  const faults: string[] = []
  if (!user) faults.push('COUCHDB_USER: expected the user of COUCHDB_PASSWORD, got none')
  if (!password) faults.push('COUCHDB_PASSWORD: expected the password of COUCHDB_USER, got none')
  if (!url) faults.push('COUCHDB_URL: expected the server of COUCHDB_USER and COUCHDB_PASSWORD, got none')
  else if (url.includes('@')) faults.push('COUCHDB_USER: expected a user here or in COUCHDB_URL, got both')
  return faults
}

function withCredentials({ COUCHDB_URL, COUCHDB_USER, COUCHDB_PASSWORD }: Settings): string | undefined {
  if (COUCHDB_URL === undefined || COUCHDB_USER === undefined) return COUCHDB_URL
  const url = new URL(COUCHDB_URL)
  // The setters leave a percent sign alone, which would be read as an escape later.
  url.username = encodeURIComponent(COUCHDB_USER)
  url.password = encodeURIComponent(COUCHDB_PASSWORD ?? '')
  return url.href.replace(/\/+$/, '')
}

/** One line of the table of settings. */
export interface SettingDescription {
  readonly name: SettingName
  /** On the command line: `--port`, the name without the house's own prefix. */
  readonly flag: string
  /** What stands for the value in `--help`: `port`. */
  readonly argument: string
  readonly default: string
  readonly meaning: string
  /** True if it may come from a file too, named by `NAME_FILE`. */
  readonly fromFile: boolean
}

/** All settings, in the order in which they are printed: what `--help` and the README are made from. */
export const describeSettings = (): SettingDescription[] =>
  settingNames.map((name) => {
    const { argument, meaning, none, secret } = infoOf(name)
    return {
      name,
      flag: `--${name.replace('SIDECAR_', '').toLowerCase().replaceAll('_', '-')}`,
      argument,
      default: none ?? defaultOf(name) ?? '',
      meaning,
      fromFile: secret !== undefined,
    }
  })

/** A value as it may be printed. */
function mask(text: string, secret: 'url' | 'word' | undefined): string {
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
 * An address without its password, also a malformed one: up to the last `@` everything is taken for credentials,
 * because a password with special characters in it makes an address that no parser reads as it was meant. What
 * follows a `?` may hold secrets too.
 */
function maskUrl(text: string): string {
  const [, scheme = '', rest = ''] = /^([a-z][a-z0-9+.-]*:\/*)?(.*)$/is.exec(text) ?? []
  const at = rest.lastIndexOf('@')
  const host = (at === -1 ? rest : `***@${rest.slice(at + 1)}`).replace(/\?.*$/s, '?***')
  return scheme + host
}
