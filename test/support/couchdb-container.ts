import { randomBytes } from 'node:crypto'
import { request } from 'node:http'

const IMAGE = 'couchdb:3.5'
const PING_MS = 1000

/**
 * A CouchDB in a container, where an engine answers at `DOCKER_HOST` or at the default socket; `undefined` where none
 * does, which takes a second at the most to find out.
 */
export async function startCouchContainer(): Promise<{ url: string; stop(): Promise<void> } | undefined> {
  if (!(await engineAnswers())) return undefined
  const { GenericContainer, Wait } = await import('testcontainers')
  const password = randomBytes(16).toString('hex')
  const container = await new GenericContainer(IMAGE)
    .withEnvironment({ COUCHDB_USER: 'admin', COUCHDB_PASSWORD: password })
    .withCopyContentToContainer([
      { content: '[couchdb]\nsingle_node = true\n', target: '/opt/couchdb/etc/local.d/single-node.ini' },
    ])
    .withExposedPorts(5984)
    .withWaitStrategy(Wait.forHttp('/_users', 5984).withBasicCredentials('admin', password).forStatusCode(200))
    .start()
  return {
    url: `http://admin:${password}@${container.getHost()}:${container.getMappedPort(5984)}`,
    stop: async () => void (await container.stop()),
  }
}

function engineAnswers(): Promise<boolean> {
  const engine = new URL(process.env.DOCKER_HOST ?? 'unix:///var/run/docker.sock')
  const isSocket = engine.protocol === 'unix:'
  const address = isSocket ? { socketPath: engine.pathname } : { host: engine.hostname, port: engine.port }
  return new Promise((resolve) => {
    const ping = request({ ...address, path: '/_ping', timeout: PING_MS }, (answer) => {
      answer.resume()
      resolve(answer.statusCode === 200)
    })
    ping.on('timeout', () => ping.destroy())
    ping.on('error', () => resolve(false))
    ping.end()
  })
}
