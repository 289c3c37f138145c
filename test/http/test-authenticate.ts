import { onTestFinished } from 'vitest'
import { systemClock, type Clock } from '../../sidecar/core/clock.ts'
import { createSessions, type WhoIs } from '../../sidecar/couch/session.ts'
import { createAuthenticate, type Authenticate } from '../../sidecar/http/authenticate.ts'
import { couchUrl } from '../support/couchdb.ts'

export interface TestAuthenticateOptions {
  readonly url?: string
  readonly clock?: Clock
  /** The server to use in place of CouchDB. */
  readonly whoIs?: WhoIs
  /** Called for each request to CouchDB. */
  readonly onRequest?: () => void
}

/** A header of the test identifies the client. */
export function createTestAuthenticate(options: TestAuthenticateOptions = {}): Authenticate {
  const { url = couchUrl(), clock = systemClock, onRequest } = options
  const sessions = createSessions({ url })
  onTestFinished(() => sessions.close())
  const whoIs: WhoIs = (...question) => {
    onRequest?.()
    return (options.whoIs ?? sessions.whoIs)(...question)
  }
  const clientOf: Parameters<typeof createAuthenticate>[0]['clientOf'] = (c) =>
    c.req.header('x-test-client') ?? '192.0.2.1'
  return createAuthenticate({ sessions: { whoIs, own: sessions.own }, clientOf, clock })
}
