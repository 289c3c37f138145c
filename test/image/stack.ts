/** The services of docker-compose.yml in a container engine, as one command brings them up. */
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
  /** Runs one command of docker compose; resolves with what it prints. */
  compose(...args: string[]): Promise<string>
  /** Where a port of a service can be reached from here. */
  urlOf(service: string, port: number): Promise<string>
  /** What the engine says of its container. */
  inspect(service: string): ReturnType<Awaited<ReturnType<typeof getContainerRuntimeClient>>['container']['inspect']>
  /** Resolves when the engine calls it healthy. */
  untilHealthy(service: string): Promise<void>
  /** Evaluates an expression of JavaScript in the container, as the user that it runs as. */
  evaluate(service: string, expression: string): Promise<unknown>
  /** Lays more over the compose file, and brings up what that changes. */
  change(services: Readonly<Record<string, unknown>>): Promise<void>
  /** Removes everything but the images. */
  close(): Promise<void>
}

/** A base image that is neither here nor to be had, which is nobody's fault here. */
export async function findMissingImage(): Promise<string | undefined> {
  const [, version] = /^ARG NODE_VERSION=(\d+)$/m.exec(read('Dockerfile'))!
  const { couchdb, mail } = readCompose().services
  const client = await getContainerRuntimeClient()
  const there = (image: ImageName) => client.image.inspect(image).then(Boolean, () => false)
  for (const name of [`node:${version}-bookworm-slim`, couchdb!.image, mail!.image]) {
    const image = ImageName.fromString(name)
    await client.image.pull(image).catch(() => {}) // may also resolve where nothing came
    if (!(await there(image))) return name
  }
  return undefined
}

/** Every port is a free one, so that it does not get in the way of a stack that somebody tries out. */
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
      await writeFile(file, JSON.stringify({ services })) // which is YAML, too
      files.push(file)
      await compose('up', '--detach')
    },
    close,
  }
}
