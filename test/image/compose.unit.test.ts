/** docker-compose.yml, checked without a container engine. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadConfig } from '../../sidecar/config.ts'
import { root } from '../acceptance/build.ts'
import { IMAGE } from '../support/couchdb-container.ts'
import { compose, read, type Service } from './files.ts'

const file = compose()
const sidecars = Object.values(file.services).filter(({ image }) => image === 'couchdb-sidecar')

/** The settings as the process reads them, with the example secrets in /run/secrets. */
const configOf = ({ environment }: Service) =>
  loadConfig({
    env: Object.fromEntries(
      Object.entries(environment!).map(([name, value]) => [
        name,
        value.replace('/run/secrets/', join(root, 'secrets.example/')),
      ]),
    ),
    envFile: join(root, 'test/image/.env'),
  })

test('every setting exists, has a valid value, and points to another service', () => {
  for (const sidecar of sidecars) {
    const { couchdbUrl, smtpUrl } = configOf(sidecar)
    expect(file.services).toHaveProperty(new URL(couchdbUrl!).hostname)
    expect(file.services).toHaveProperty(new URL(smtpUrl!).hostname)
    expect(Object.keys(sidecar.depends_on!)).toEqual([couchdbUrl, smtpUrl].map((url) => new URL(url!).hostname))
  }
})

test('CouchDB has the admin account of the sidecars', () => {
  const { username, password } = new URL(configOf(sidecars[0]!).couchdbUrl!)
  expect(file.services.couchdb!.environment).toEqual({ COUCHDB_USER: username })
  expect(file.services.couchdb!.secrets).toEqual(['couchdb_password'])
  expect(read('secrets.example/couchdb_password').trim()).toBe(password)
})

test('the compose file and the README state the example password', () => {
  const { password } = new URL(configOf(sidecars[0]!).couchdbUrl!)
  expect(read('README.md')).toContain(`-u admin:${password} `)
  expect(read('docker-compose.yml')).toContain(`admin, ${password}\n`)
})

test('two sidecars share one image and differ in name and port, and only one builds the image', () => {
  expect(sidecars).toHaveLength(2)
  const [first, second] = sidecars.map(
    ({ hostname: _, ports: _ports, build: _build, pull_policy: _pull, ...same }) => same,
  )
  expect(first).toEqual(second)
  expect(new Set(sidecars.map(({ hostname }) => hostname))).toHaveProperty('size', 2)
  expect(sidecars.map(({ build, pull_policy }) => ({ build, pull_policy }))).toEqual([
    { build: '.', pull_policy: undefined },
    { build: undefined, pull_policy: 'never' },
  ])
})

test('links in mails point to the port of a sidecar', () => {
  const published = sidecars.flatMap(({ ports }) => ports!.map((port) => port.split(':')[1]))
  for (const sidecar of sidecars) expect(published).toContain(new URL(configOf(sidecar).publicUrl!).port)
})

test('every port is bound to this machine, because the password is public', () => {
  const ports = Object.values(file.services).flatMap(({ ports = [] }) => ports)
  expect(ports).toHaveLength(4)
  for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/)
})

test('the stop timeout of a sidecar exceeds its own grace period', () => {
  for (const sidecar of sidecars) {
    expect(parseInt(sidecar.stop_grace_period!) * 1000).toBeGreaterThan(configOf(sidecar).graceMs + 5000)
  }
})

test('a sidecar has a read-only file system and cannot gain privileges', () => {
  const locked = { read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] }
  for (const sidecar of sidecars) expect(sidecar).toMatchObject(locked)
})

test('secrets and volumes are declared, and their example files exist', () => {
  for (const { secrets = [], volumes = [] } of Object.values(file.services)) {
    for (const name of secrets) expect(existsSync(join(root, file.secrets[name]!.file)), name).toBe(true)
    for (const volume of volumes) expect(file.volumes).toHaveProperty(volume.split(':')[0]!)
  }
})

test('a service with dependents has a health check', () => {
  for (const [name, { condition }] of sidecars.flatMap(({ depends_on }) => Object.entries(depends_on!))) {
    expect(condition === 'service_healthy' ? file.services[name] : { healthcheck: {} }).toHaveProperty('healthcheck')
  }
})

test('the CouchDB image is the one that the tests start in a container', () => {
  expect(file.services.couchdb!.image).toBe(IMAGE)
})
