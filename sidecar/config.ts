/**
 * Settings of the process, read once at its start and passed down as arguments. No other part reads the environment.
 * All faults are reported together.
 */
import { hostname } from 'node:os'
import { ConfigError } from './core/errors.ts'
import { defaultOf, infoOf, settingNames, settings, type SettingName, type Settings } from './config/settings.ts'
import { collect, type Found, type Sources } from './config/sources.ts'

export type { Sources } from './config/sources.ts'

export interface Config {
  /** URL with user name and password. Undefined: the embedded server. */
  readonly couchdbUrl: string | undefined
  /** URL by which devices reach CouchDB, without a trailing slash. Undefined: the address of CouchDB itself. */
  readonly couchdbPublicUrl: string | undefined
  /** URL with user name and password. Undefined: the embedded mail catcher. */
  readonly smtpUrl: string | undefined
  /** 0: any free port. */
  readonly port: number
  readonly host: string
  /** Base of the links in mails, without a trailing slash. Undefined: `http://localhost` and the bound port. */
  readonly publicUrl: string | undefined
  readonly mailFrom: string
  readonly mailTemplates: string | undefined
  /** Maximum mails to one address within an hour. */
  readonly mailsPerOwner: number
  /** Maximum mails within an hour by which one owner invites others. */
  readonly invitesPerOwner: number
  readonly channelsPerOwner: number
  /** Shards (`q`) of new databases of users and channels. */
  readonly shards: number
  /** Folders with design documents for each channel. */
  readonly channelDdocs: readonly string[]
  readonly confirmExpiryMs: number
  /** Documents per minute from one address. 0: no inbox. */
  readonly inboxRate: number
  /** Maximum unconfirmed devices; beyond it, the inbox refuses new ones. */
  readonly inboxWaiting: number
  /** Number of proxies in front of the sidecar. */
  readonly proxies: number
  readonly controlDb: string
  /** Database names and globs. */
  readonly databases: readonly string[]
  /** Database that the database events are written to. */
  readonly globalChangesDb: string
  /** Name prefix of the history databases. Undefined: no history. */
  readonly historyDb: string | undefined
  readonly historyAgeMs: number
  /** Module paths as given. */
  readonly handlers: readonly string[]
  readonly webhookHosts: readonly string[]
  /** Keys of the webhook secrets. */
  readonly webhookKeys: readonly Buffer[]
  readonly name: string
  /** Maximum concurrent requests to CouchDB. */
  readonly connections: number
  readonly reads: number
  /** Maximum bytes of documents in flight. */
  readonly memoryBytes: number
  readonly leaseMs: number
  readonly graceMs: number
  readonly logLevel: Settings['SIDECAR_LOG_LEVEL']
}

/**
 * Reads and checks all settings. Priority: flags, environment, `.env` file, defaults.
 *
 * @throws ConfigError with every fault: the setting, the expected and the given value. Passwords are never shown.
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

/** Name and password need each other, and one URL. Either the URL holds the credentials, or these two settings do. */
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
  // The URL setters do not escape a percent sign, and a later parser would read it as an escape.
  url.username = encodeURIComponent(COUCHDB_USER)
  url.password = encodeURIComponent(COUCHDB_PASSWORD ?? '')
  return url.href.replace(/\/+$/, '')
}

/** One row of the settings table. */
export interface SettingDescription {
  readonly name: SettingName
  /** Flag on the command line: `--port`, the name without the prefix `SIDECAR_`. */
  readonly flag: string
  /** Placeholder of the value in `--help`: `port`. */
  readonly argument: string
  readonly default: string
  readonly meaning: string
  /** True if `NAME_FILE` may name a file that holds the value. */
  readonly fromFile: boolean
}

/** Lists all settings in print order. `--help` and docs/settings.md are made from this list. */
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

/** Masks the secrets of a value for output. */
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
 * Removes the credentials from a URL, also from a malformed one. All text up to the last `@` counts as credentials: a
 * password with special characters makes a URL that no parser reads as intended. The part after `?` may hold secrets
 * too.
 */
function maskUrl(text: string): string {
  const [, scheme = '', rest = ''] = /^([a-z][a-z0-9+.-]*:\/*)?(.*)$/is.exec(text) ?? []
  const at = rest.lastIndexOf('@')
  const host = (at === -1 ? rest : `***@${rest.slice(at + 1)}`).replace(/\?.*$/s, '?***')
  return scheme + host
}
