import { randomBytes } from 'node:crypto'
import { engineAnswers } from './container-engine.ts'

/** The same image as in docker-compose.yml. */
export const IMAGE = 'couchdb:3.5'

/**
 * A CouchDB in a container, if an engine answers at `DOCKER_HOST` or at the default socket. Gives `undefined`
 * otherwise, after at most one second.
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
