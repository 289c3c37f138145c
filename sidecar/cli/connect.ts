import type { Config } from '../config.ts'
import { ConfigError, SidecarError } from '../core/errors.ts'
import { createCouch, type Couch } from '../couch/client.ts'
import { CouchError } from '../couch/couch-errors.ts'

/** Runs `work` with a client of the configured server. Unlike `start`, these commands have no embedded server. */
export async function withCouch<T>(config: Config, work: (couch: Couch) => Promise<T>): Promise<T> {
  if (config.couchdbUrl === undefined) {
    throw new ConfigError([
      'COUCHDB_URL: expected the address of a server, such as http://user:password@host:5984, got none; a running "start" prints the address of its embedded server',
    ])
  }
  const couch = createCouch({ url: config.couchdbUrl, connections: config.connections })
  try {
    return await work(couch)
  } catch (thrown) {
    if (!(thrown instanceof CouchError)) throw thrown
    const isDenied = thrown.code === 'unauthorized' || thrown.code === 'forbidden'
    const advice = isDenied ? ' (COUCHDB_URL: expected the name and password of a server admin)' : ''
    throw new SidecarError(thrown.code, `${couch.url}: ${thrown.message}${advice}`, { cause: thrown })
  } finally {
    await couch.close()
  }
}

/** Name of the operator as documents hold it: the user in these settings. */
export const operatorIn = ({ couchdbUrl }: Pick<Config, 'couchdbUrl'>): string =>
  decodeURIComponent(new URL(couchdbUrl ?? 'http://localhost').username) || 'an admin'
