/** The services of docker-compose.yml in a container engine, started by one command. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { getContainerRuntimeClient, ImageName } from 'testcontainers'
import { expect, inject } from 'vitest'
import { root } from '../acceptance/build.ts'
import { uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { compose as readCompose, read } from './files.ts'

export interface Stack {
  /** Runs one docker compose command. Resolves with its output. */
  compose(...args: string[]): Promise<string>
  /** The address of a port of a service, reachable from the tests. */
  urlOf(service: string, port: number): Promise<string>
  /** The engine's description of its container. */
  inspect(service: string): ReturnType<Awaited<ReturnType<typeof getContainerRuntimeClient>>['container']['inspect']>
  /** Resolves when the engine reports it healthy. */
  untilHealthy(service: string): Promise<void>
  /** Evaluates a JavaScript expression in the container, as its user. */
  evaluate(service: string, expression: string): Promise<unknown>
  /** Adds an override to the compose file and applies the change. */
  change(services: Readonly<Record<string, unknown>>): Promise<void>
  /** Removes everything except the images. */
  close(): Promise<void>
}

/** A base image that is neither stored on this machine nor can be pulled, if any. Tests that need it are skipped. */
export async function findMissingImage(): Promise<string | undefined> {
  const [, version] = /^ARG NODE_VERSION=(\d+)$/m.exec(read('Dockerfile'))!
  const { couchdb, mail } = readCompose().services
  const client = await getContainerRuntimeClient()
  const isStored = (image: ImageName) => client.image.inspect(image).then(Boolean, () => false)
  for (const name of [`node:${version}-bookworm-slim`, couchdb!.image, mail!.image]) {
    const image = ImageName.fromString(name)
    await client.image.pull(image).catch(() => {}) // may resolve without an image
    if (!(await isStored(image))) return name
  }
  return undefined
}

/** Every port is a free one, so that a test does not disturb a running stack of a developer. */
const SETTINGS = {
  PORT_COUCHDB: '0',
  PORT_MAIL: '0',
  PORT_SIDECAR_1: '0',
  PORT_SIDECAR_2: '0',
  SECRETS: './secrets.example',
}

export async function startStack(): Promise<Stack> {
  const home = await mkdtemp(join(tmpdir(), 'couchdb-sidecar-stack-'))
  const env = { ...process.env, ...SETTINGS, COMPOSE_PROJECT_NAME: uniqueName('sidecar') }
  const files = ['docker-compose.yml']
  const [command, ...first] = inject('compose')!
  const client = await getContainerRuntimeClient()

  async function compose(...args: string[]): Promise<string> {
    const all = [...first, ...files.flatMap((file) => ['-f', file]), ...args]
    return (await promisify(execFile)(command!, all, { cwd: root, env })).stdout.trim()
  }

  async function inspectService(service: string) {
    return client.container.inspect(client.container.getById(await compose('ps', '-a', '-q', service)))
  }

  async function close() {
    await compose('down', '--volumes', '--timeout', '1')
    await rm(home, { recursive: true })
  }

  try {
    await compose('up', '--detach', '--build')
    const { Size: bytes } = await client.image.inspect(ImageName.fromString('couchdb-sidecar'))
    console.log(`The image of the sidecar has ${Math.round(bytes / 1e6)} MB`)
  } catch (thrown) {
    await close()
    throw thrown
  }
  return {
    compose,
    inspect: inspectService,
    urlOf: async (service, port) => `http://${await compose('port', service, String(port))}`,
    untilHealthy: (service) =>
      eventually(async () => expect((await inspectService(service)).State.Health?.Status).toBe('healthy')),
    async evaluate(service, expression) {
      const script = `Promise.resolve(${expression}).then((value) => console.log(JSON.stringify(value)))`
      return JSON.parse(await compose('exec', '-T', service, 'node', '-e', script)) as unknown
    },
    async change(services) {
      const file = join(home, `${files.length}.yml`)
      await writeFile(file, JSON.stringify({ services })) // JSON is valid YAML
      files.push(file)
      await compose('up', '--detach')
    },
    close,
  }
}
