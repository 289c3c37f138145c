/** docker-compose.yml, as far as it can be checked without a container engine. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadConfig } from '../../sidecar/config.ts'
import { root } from '../acceptance/build.ts'
import { IMAGE } from '../support/couchdb-container.ts'
import { compose, read, type Service } from './files.ts'

const file = compose()
const sidecars = Object.values(file.services).filter(({ image }) => image === 'couchdb-sidecar')

/** As the process reads them: what is mounted at /run/secrets is in the files that are tried out with. */
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

test('every setting is one, with a value that the sidecar takes, and leads to another service', () => {
  for (const sidecar of sidecars) {
    const { couchdbUrl, smtpUrl } = configOf(sidecar)
    expect(file.services).toHaveProperty(new URL(couchdbUrl!).hostname)
    expect(file.services).toHaveProperty(new URL(smtpUrl!).hostname)
    expect(Object.keys(sidecar.depends_on!)).toEqual([couchdbUrl, smtpUrl].map((url) => new URL(url!).hostname))
  }
})

test('CouchDB knows the admin that the sidecars are', () => {
  const { username, password } = new URL(configOf(sidecars[0]!).couchdbUrl!)
  expect(file.services.couchdb!.environment).toEqual({ COUCHDB_USER: username })
  expect(file.services.couchdb!.secrets).toEqual(['couchdb_password'])
  expect(read('secrets.example/couchdb_password').trim()).toBe(password)
})

test('the password to try it out with is told where people look for it', () => {
  const { password } = new URL(configOf(sidecars[0]!).couchdbUrl!)
  expect(read('README.md')).toContain(`-u admin:${password} `)
  expect(read('docker-compose.yml')).toContain(`admin, ${password}\n`)
})

test('two sidecars share one image, and differ in name, in port and in who builds it', () => {
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

test('the links in mails lead to the port of a sidecar', () => {
  const published = sidecars.flatMap(({ ports }) => ports!.map((port) => port.split(':')[1]))
  for (const sidecar of sidecars) expect(published).toContain(new URL(configOf(sidecar).publicUrl!).port)
})

test('no port is open to other machines: the password is known', () => {
  const ports = Object.values(file.services).flatMap(({ ports = [] }) => ports)
  expect(ports).toHaveLength(4)
  for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/)
})

test('a sidecar has more time to stop than it takes', () => {
  for (const sidecar of sidecars) {
    expect(parseInt(sidecar.stop_grace_period!) * 1000).toBeGreaterThan(configOf(sidecar).graceMs + 5000)
  }
})

test('a sidecar may write nothing, and gain nothing', () => {
  const locked = { read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] }
  for (const sidecar of sidecars) expect(sidecar).toMatchObject(locked)
})

test('secrets and volumes are declared, and the files to try them out with are there', () => {
  for (const { secrets = [], volumes = [] } of Object.values(file.services)) {
    for (const name of secrets) expect(existsSync(join(root, file.secrets[name]!.file)), name).toBe(true)
    for (const volume of volumes) expect(file.volumes).toHaveProperty(volume.split(':')[0]!)
  }
})

test('a service that others wait for says when it is healthy', () => {
  for (const [name, { condition }] of sidecars.flatMap(({ depends_on }) => Object.entries(depends_on!))) {
    expect(condition === 'service_healthy' ? file.services[name] : { healthcheck: {} }).toHaveProperty('healthcheck')
  }
})

test('CouchDB is the one that the tests start in a container', () => {
  expect(file.services.couchdb!.image).toBe(IMAGE)
})
