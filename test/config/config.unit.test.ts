import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { describeSettings, loadConfig, type Sources } from '../../sidecar/config.ts'
import { ConfigError } from '../../sidecar/core/errors.ts'

let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'config-'))))
afterEach(() => rmSync(folder, { recursive: true }))

function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

function faultsOf(sources: Sources): readonly string[] {
  try {
    loadConfig(sources)
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown.faults
    throw thrown
  }
  return []
}

const fromEnv = (env: Record<string, string>) => loadConfig({ env })

describe('the settings', () => {
  it('each have a default', () => {
    expect(fromEnv({})).toEqual({
      couchdbUrl: undefined,
      couchdbPublicUrl: undefined,
      smtpUrl: undefined,
      port: 5985,
      host: '127.0.0.1',
      publicUrl: undefined,
      mailFrom: 'sidecar@localhost',
      mailTemplates: undefined,
      mailsPerOwner: 5,
      invitesPerOwner: 20,
      channelsPerOwner: 100,
      shards: 1,
      channelDdocs: [],
      confirmExpiryMs: 86_400_000,
      inboxRate: 30,
      inboxWaiting: 10_000,
      proxies: 0,
      controlDb: 'control',
      databases: ['control'],
      globalChangesDb: 'global_changes',
      historyDb: undefined,
      historyAgeMs: 30 * 86_400_000,
      handlers: [],
      webhookHosts: [],
      webhookKeys: [],
      name: hostname(),
      connections: 32,
      reads: 32,
      memoryBytes: 12 * 1024 * 1024,
      leaseMs: 30_000,
      graceMs: 10_000,
      logLevel: 'info',
    })
  })

  it('come from flags first, then from the environment, then from the .env file', () => {
    const envFile = file(
      '.env',
      'SIDECAR_PORT=1\nSIDECAR_HOST=file\nSIDECAR_NAME="from file" # a comment\nSIDECAR_NAME=file',
    )
    const env = { SIDECAR_PORT: '2', SIDECAR_HOST: 'env' }
    const config = loadConfig({ env, flags: { SIDECAR_PORT: '3' }, envFile })
    expect(config).toMatchObject({ port: 3, host: 'env', name: 'file' })
  })

  it('do not require an .env file', () => {
    expect(loadConfig({ env: {}, envFile: join(folder, 'absent') }).port).toBe(5985)
  })

  it('count as not set when they are empty', () => {
    expect(fromEnv({ COUCHDB_URL: '', SIDECAR_PORT: ' ' })).toMatchObject({ couchdbUrl: undefined, port: 5985 })
  })

  it('are parsed into typed values', () => {
    const config = fromEnv({
      SIDECAR_CONFIRM_EXPIRY: '90s',
      SIDECAR_LEASE: '5s',
      SIDECAR_GRACE: '0s',
      SIDECAR_MEMORY: '2 GB',
      SIDECAR_DATABASES: 'orders, userdb-*,_users',
      SIDECAR_HANDLERS: './a.ts,b.js,',
      SIDECAR_PUBLIC_URL: 'https://example.com/sidecar/',
      SIDECAR_MAIL_FROM: 'Photos <photos@example.com>',
    })
    expect(config).toMatchObject({
      confirmExpiryMs: 90_000,
      leaseMs: 5000,
      graceMs: 0,
      memoryBytes: 2 * 1024 ** 3,
      databases: ['orders', 'userdb-*', '_users'],
      handlers: ['./a.ts', 'b.js'],
      publicUrl: 'https://example.com/sidecar',
      mailFrom: 'Photos <photos@example.com>',
    })
  })

  it('list the control database as tracked by default, under any name', () => {
    expect(fromEnv({ SIDECAR_CONTROL_DB: 'devices' }).databases).toEqual(['devices'])
  })
})

describe('a fault', () => {
  it.each([
    ['SIDECAR_PORT', '65536', 'a whole number from 0 to 65535'],
    ['SIDECAR_PORT', '0x10', 'a whole number'],
    ['SIDECAR_CONNECTIONS', '1.5', 'a whole number'],
    ['SIDECAR_CONNECTIONS', '7', 'a whole number from 8 to 10000'],
    ['SIDECAR_GRACE', '10', 'a time of at least 0s, such as 90s'],
    ['SIDECAR_CONFIRM_EXPIRY', '0h', 'a time of at least 1s'],
    ['SIDECAR_MEMORY', '16 megs', 'a size of at least 64kb'],
    ['SIDECAR_LOG_LEVEL', 'loud', 'fatal, error, warn, info'],
    ['SIDECAR_CONTROL_DB', 'Control', 'the name of a database'],
    ['SIDECAR_DATABASES', 'orders,Böse', 'names of databases and globs'],
    ['SIDECAR_PUBLIC_URL', 'example.com', 'an address such as https://'],
    ['SIDECAR_PUBLIC_URL', 'https://me:pw@example.com', 'an address such as https://'],
    ['SIDECAR_MAIL_FROM', 'nobody', 'an address such as sidecar@example.com'],
    ['SIDECAR_MAIL_FROM', 'a@b.c, d@e.f', 'an address such as sidecar@example.com'],
    ['SMTP_URL', 'http://mail.example.com', 'an address such as smtp://'],
    ['SIDECAR_LEASE', '20m', 'a time from 1s to 10m'],
    ['COUCHDB_URL', 'couch:5984', 'an address such as http://'],
  ])('names the setting, the expected value and the actual value: %s=%s', (name, value, expected) => {
    const [fault, ...others] = faultsOf({ env: { [name]: value } })
    expect(others).toEqual([])
    expect(fault).toContain(`${name}: expected ${expected}`)
    expect(fault).toContain('from the environment')
  })

  it('is listed together with all others', () => {
    const env = { SIDECAR_PORT: 'x', SIDECAR_GRACE: 'x', SIDECAR_PROT: '1', COUCHDB_USER: 'me' }
    const named = faultsOf({ env }).map((fault) => fault.split(':')[0])
    expect(named.sort()).toEqual(['COUCHDB_PASSWORD', 'COUCHDB_URL', 'SIDECAR_GRACE', 'SIDECAR_PORT', 'SIDECAR_PROT'])
  })

  it.each([
    ['SIDECAR_PROT', 'SIDECAR_PORT'],
    ['sidecar_port', 'SIDECAR_PORT'],
    ['SIDECAR_DATABASE', 'SIDECAR_DATABASES'],
    ['COUCHDB_URI', 'COUCHDB_URL'],
    ['COUCHDB_PASSWD', 'COUCHDB_PASSWORD'],
    ['COUCHDB_PASSWORD_FIEL', 'COUCHDB_PASSWORD_FILE'],
    ['SMTP_ULR', 'SMTP_URL'],
  ])('suggests the correct spelling of a misspelt name: %s', (name, meant) => {
    expect(faultsOf({ env: { [name]: '1' } })[0]).toContain(`did you mean ${meant}?`)
  })

  it('is not raised by unrelated environment variables', () => {
    const env = {
      COUCHDB_SECRET: 's',
      COUCHDB_PORT: 'tcp://10.0.0.1:5984',
      COUCHDB_ERLANG_COOKIE: 'c',
      SMTP_PORT: '25',
    }
    expect(faultsOf({ env })).toEqual([])
  })

  it.each(['SIDECAR_QUANTUM_FLUX', 'SIDECAR_WROKER', 'SIDECAR_X', 'SIDECAR_'])(
    'names an unknown setting that resembles no other: %s',
    (name) => {
      expect(faultsOf({ env: { [name]: '1' } })[0]).toContain(`${name}: expected the name of a setting`)
      expect(faultsOf({ env: { [name]: '1' } })[0]).toContain('no such setting')
    },
  )

  it('names the source of the value', () => {
    const envFile = file('.env', 'SIDECAR_PORT=nope')
    expect(faultsOf({ env: {}, envFile })[0]).toContain(envFile)
    expect(faultsOf({ env: {}, flags: { SIDECAR_PORT: 'x' } })[0]).toContain('the command line')
  })

  it('reports an .env file that cannot be read', () => {
    expect(faultsOf({ env: {}, envFile: folder })[0]).toContain('EISDIR')
  })
})

describe('a secret', () => {
  it.each([
    ['COUCHDB_URL', 'htp://admin:s3cret@couch:5984'],
    ['COUCHDB_URL', 'http://admin:12#s3cret@couch:5984'],
    ['COUCHDB_URL', 'http://admin:12/s3cret@couch:5984'],
    ['COUCHDB_URL', 'http://admin:12?s3cret@couch:5984'],
    ['COUCHDB_URL', 'admin:s3cret@couch:5984'],
    ['COUCHDB_URL', 'http://admin:s3cret@:5984'],
    ['COUCHDB_URL', 'http://admin:s3cret%@couch:5984'],
    ['COUCHDB_URL', 'http://s3cret%:12@couch:5984'],
    ['COUCHDB_URL', 'http://s3cr%c3:%a9@couch:5984'],
    ['SMTP_URL', 'smtp://me:s3cret%@mail'],
    ['SMTP_URL', 'smtp://me:s3cr/et@s3cret@mail'],
    ['SMTP_URL', 'smtps:me:s3cret@mail'],
    ['SMTP_URL', 'mail?pass=s3cret'],
  ])('is never printed with a fault: %s=%s', (name, value) => {
    const faults = faultsOf({ env: { [name]: value } })
    expect(faults).toHaveLength(1)
    expect(faults[0]).toContain(`${name}: expected an address`)
    expect(faults[0]).not.toContain('s3cr')
  })

  it('of CouchDB can be set separately from the URL, in any characters', () => {
    const config = fromEnv({ COUCHDB_URL: 'http://couch:5984/', COUCHDB_USER: 'a:b', COUCHDB_PASSWORD: 'p%40/@ü' })
    const url = new URL(config.couchdbUrl ?? '')
    expect(url.host).toBe('couch:5984')
    expect([url.username, url.password].map(decodeURIComponent)).toEqual(['a:b', 'p%40/@ü'])
  })

  it('can be read from a file', () => {
    const config = fromEnv({
      COUCHDB_URL: 'http://couch:5984',
      COUCHDB_USER_FILE: file('user', 'admin\n'),
      COUCHDB_PASSWORD_FILE: file('password', 'pw\n'),
      SMTP_URL_FILE: file('smtp', 'smtps://u:p@mail.example.com\n'),
    })
    expect(config).toMatchObject({ couchdbUrl: 'http://admin:pw@couch:5984', smtpUrl: 'smtps://u:p@mail.example.com' })
  })

  it('on the command line takes precedence over a file named in the environment', () => {
    const env = { COUCHDB_URL_FILE: file('url', 'http://from-file:5984') }
    expect(loadConfig({ env, flags: { COUCHDB_URL: 'http://from-flag:5984' } }).couchdbUrl).toBe(
      'http://from-flag:5984',
    )
  })

  it.each([
    ['does not exist', () => join(folder, 'absent')],
    ['is empty', () => file('empty', '\n')],
    ['contains an invalid value', () => file('bad', 'ftp://admin:s3cret@couch')],
  ])('whose file %s is a fault that names the file, not its content', (_, path) => {
    const [fault] = faultsOf({ env: { COUCHDB_URL_FILE: path() } })
    expect(fault).toContain(path())
    expect(fault).not.toContain('s3cret')
  })

  it('set both as a value and as a file is a fault', () => {
    const env = { SMTP_URL: 'smtp://a', SMTP_URL_FILE: file('smtp', 'smtp://b') }
    expect(faultsOf({ env })).toEqual([
      expect.stringContaining('SMTP_URL: expected a value or SMTP_URL_FILE, got both'),
    ])
  })

  it('of CouchDB both in the URL and as a setting is a fault', () => {
    const env = { COUCHDB_URL: 'http://a:s3cret@couch', COUCHDB_USER: 'b', COUCHDB_PASSWORD: 's3cret' }
    const faults = faultsOf({ env })
    expect(faults).toEqual([expect.stringContaining('COUCHDB_USER: expected a user here or in COUCHDB_URL, got both')])
    expect(faults.join()).not.toContain('s3cret')
  })
})

describe('the table of settings', () => {
  it('has each setting with its flag, default and meaning', () => {
    const table = describeSettings()
    expect(table.find(({ name }) => name === 'SIDECAR_PORT')).toEqual({
      name: 'SIDECAR_PORT',
      flag: '--port',
      argument: 'port',
      default: '5985',
      meaning: expect.any(String) as string,
      fromFile: false,
    })
    expect(table.find(({ name }) => name === 'COUCHDB_URL')).toMatchObject({ flag: '--couchdb-url', fromFile: true })
    for (const row of table) expect(row.default && row.meaning && row.argument, row.name).toBeTruthy()
  })

  it('shows defaults that are valid values', () => {
    const env = Object.fromEntries(
      describeSettings()
        .filter((row) => !/^(none|the |http)/.test(row.default))
        .map((row) => [row.name, row.default]),
    )
    expect(loadConfig({ env })).toEqual(loadConfig({ env: {} }))
  })
})
