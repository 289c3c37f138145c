/**
 * All settings, each defined once: name, values, default and meaning. The types, the check, `--help` and the table in
 * docs/settings.md follow from here.
 */
import { z } from 'zod'
import {
  bytes,
  database,
  databases,
  duration,
  folders,
  hosts,
  httpUrl,
  label,
  modules,
  sender,
  smtpUrl,
  webhookSecrets,
  whole,
} from './values.ts'

export interface SettingInfo {
  /** Placeholder of the value in `--help`. */
  readonly argument: string
  readonly meaning: string
  /** Effect of a missing setting, if that is not a default value. */
  readonly none?: string
  /** May also come from a file (`NAME_FILE`). Output masks it: all of a `word`, the password of a `url`. */
  readonly secret?: 'url' | 'word'
}

const described = <T extends z.ZodType>(schema: T, info: SettingInfo): T => schema.meta({ ...info })

export const settings = z.object({
  COUCHDB_URL: described(httpUrl('http://user:password@host:5984', 'allowed').optional(), {
    argument: 'url',
    meaning: 'URL of the CouchDB server; may contain user and password',
    none: 'none: embedded server',
    secret: 'url',
  }),
  COUCHDB_USER: described(z.string().optional(), {
    argument: 'name',
    meaning: 'name of a server admin, if COUCHDB_URL contains no user',
    none: 'none',
    secret: 'word',
  }),
  COUCHDB_PASSWORD: described(z.string().optional(), {
    argument: 'word',
    meaning: 'password of COUCHDB_USER',
    none: 'none',
    secret: 'word',
  }),
  COUCHDB_PUBLIC_URL: described(httpUrl('https://couch.example.com', 'forbidden').optional(), {
    argument: 'url',
    meaning: 'URL by which devices reach CouchDB; the database URLs that they get begin with it',
    none: 'the same as COUCHDB_URL',
  }),
  SMTP_URL: described(smtpUrl.optional(), {
    argument: 'url',
    meaning: 'URL of the mail server',
    none: 'none: embedded mail catcher',
    secret: 'url',
  }),
  SIDECAR_PORT: described(whole(0, 65_535).prefault('5985'), {
    argument: 'port',
    meaning: "port of the sidecar's HTTP server (0: any free port)",
  }),
  SIDECAR_HOST: described(label('a host name or an address, such as 127.0.0.1').prefault('127.0.0.1'), {
    argument: 'host',
    meaning: 'address on which the HTTP server listens (0.0.0.0: all)',
  }),
  SIDECAR_PUBLIC_URL: described(httpUrl('https://sidecar.example.com', 'forbidden').optional(), {
    argument: 'url',
    meaning: 'URL by which users reach the sidecar; the links in mails begin with it',
    none: 'http://localhost:$SIDECAR_PORT',
  }),
  SIDECAR_MAIL_FROM: described(sender.prefault('sidecar@localhost'), {
    argument: 'address',
    meaning: 'sender address of the mails',
  }),
  SIDECAR_MAIL_TEMPLATES: described(z.string().optional(), {
    argument: 'folder',
    meaning:
      'folder with your own mail templates: confirm.subject.txt, confirm.txt, confirm.html, invite.subject.txt …',
    none: 'none: built-in texts',
  }),
  SIDECAR_MAILS_PER_OWNER: described(whole(1, 1_000_000).prefault('5'), {
    argument: 'number',
    meaning:
      'maximum confirmation mails per hour to one mailbox that one network address may cause; all addresses together: four times as many',
  }),
  SIDECAR_INVITES_PER_OWNER: described(whole(0, 1_000_000).prefault('20'), {
    argument: 'number',
    meaning: 'maximum invitation mails per hour that one owner may cause',
  }),
  SIDECAR_CHANNELS_PER_OWNER: described(whole(0, 1_000_000).prefault('100'), {
    argument: 'number',
    meaning: 'maximum channels of one owner, including archived channels; each channel is a database',
  }),
  SIDECAR_SHARDS: described(whole(1, 256).prefault('1'), {
    argument: 'number',
    meaning: 'number of shards (q) of new databases for users and channels; existing databases keep theirs',
  }),
  SIDECAR_CHANNEL_DDOCS: described(folders.optional(), {
    argument: 'folders',
    meaning: 'folders with your own design documents for each channel, in the couchapp layout, separated by commas',
    none: 'none',
  }),
  SIDECAR_CONFIRM_EXPIRY: described(duration('1s').prefault('24h'), {
    argument: 'time',
    meaning: 'how long the link in a confirmation mail is valid',
  }),
  SIDECAR_INBOX_RATE: described(whole(0, 1_000_000).prefault('30'), {
    argument: 'number',
    meaning: 'maximum documents per minute that the inbox accepts from one network address (0: no inbox)',
  }),
  SIDECAR_INBOX_WAITING: described(whole(1, 100_000_000).prefault('10000'), {
    argument: 'number',
    meaning: 'maximum devices that wait for confirmation; beyond it, the inbox refuses new devices',
  }),
  SIDECAR_PROXIES: described(whole(0, 10).prefault('0'), {
    argument: 'number',
    meaning: 'number of proxies in front of the sidecar; each must append the address of its client to X-Forwarded-For',
  }),
  SIDECAR_CONTROL_DB: described(database.prefault('control'), {
    argument: 'name',
    meaning: 'name of the control database, where devices register',
  }),
  SIDECAR_DATABASES: described(databases.optional(), {
    argument: 'names',
    meaning:
      'names and globs of the databases to handle, separated by commas; a named database is followed, a database that matches a glob is visited',
    none: 'the control database',
  }),
  SIDECAR_GLOBAL_CHANGES_DB: described(database.prefault('global_changes'), {
    argument: 'name',
    meaning: 'database for the database events, which GET /_db_updates serves',
  }),
  SIDECAR_HISTORY_DB: described(database.optional(), {
    argument: 'name',
    meaning:
      'name prefix of the history databases, one for each week; they record how handlers ended their work on each document',
    none: 'none: no history',
  }),
  SIDECAR_HISTORY_AGE: described(duration('1d').prefault('30d'), {
    argument: 'time',
    meaning: 'how long the history is kept; the database of a week is deleted when its last day is older',
  }),
  SIDECAR_HANDLERS: described(modules.optional(), {
    argument: 'paths',
    meaning:
      'paths of your own handlers, separated by commas: modules in TypeScript or JavaScript, or JSON files that name webhooks',
    none: 'none',
  }),
  SIDECAR_WEBHOOK_HOSTS: described(hosts.optional(), {
    argument: 'hosts',
    meaning: 'hosts that webhooks may call, with their ports, separated by commas; * matches any text',
    none: 'none',
  }),
  SIDECAR_WEBHOOK_SECRETS: described(webhookSecrets.optional(), {
    argument: 'words',
    meaning: 'secrets (whsec_…) for the signatures of webhook calls, separated by commas; each secret signs every call',
    none: 'none',
    secret: 'word',
  }),
  SIDECAR_NAME: described(label('a name of up to 128 letters, digits and punctuation').optional(), {
    argument: 'name',
    meaning: 'name of this worker: unique, and the same after a restart',
    none: 'the host name',
  }),
  SIDECAR_CONNECTIONS: described(whole(8, 10_000).prefault('32'), {
    argument: 'number',
    meaning: 'maximum concurrent requests to CouchDB, for all databases together; each feed has one more connection',
  }),
  SIDECAR_READS: described(whole(1, 10_000).prefault('32'), {
    argument: 'number',
    meaning: 'maximum concurrent reads of databases that match a glob; each read is a short request',
  }),
  SIDECAR_MEMORY: described(bytes('64kb').prefault('12mb'), {
    argument: 'size',
    meaning: 'maximum bytes of documents in flight, for all databases together; one handler uses at most half of it',
  }),
  SIDECAR_LEASE: described(duration('1s', '10m').prefault('30s'), {
    argument: 'time',
    meaning:
      'at most 10m: a claim that is not renewed for this long, or longer while CouchDB answers slowly, may be taken over by another worker; a worker without a heartbeat for half this time counts as dead',
  }),
  SIDECAR_GRACE: described(duration('0s').prefault('10s'), {
    argument: 'time',
    meaning: 'how long the sidecar waits for running handlers when it stops',
  }),
  SIDECAR_LOG_LEVEL: described(
    z
      .enum(
        ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
        'fatal, error, warn, info, debug, trace or silent',
      )
      .prefault('info'),
    {
      argument: 'level',
      meaning: 'minimum level of logged messages: fatal, error, warn, info, debug, trace or silent',
    },
  ),
})

export type Settings = z.infer<typeof settings>
export type SettingName = keyof Settings

export const settingNames = Object.keys(settings.shape) as SettingName[]

export const infoOf = (name: SettingName): SettingInfo => settings.shape[name].meta() as unknown as SettingInfo

/** The default as a user would write it; `undefined` for a setting without one. */
export function defaultOf(name: SettingName): string | undefined {
  const schema: z.ZodType = settings.shape[name]
  return schema instanceof z.ZodPrefault ? String(schema.def.defaultValue) : undefined
}
