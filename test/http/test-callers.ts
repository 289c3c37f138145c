import { onTestFinished } from 'vitest'
import { systemClock, type Clock } from '../../sidecar/core/clock.ts'
import { createSessions, type WhoIs } from '../../sidecar/couch/session.ts'
import { createCallers, type CallerOf } from '../../sidecar/http/caller.ts'
import { couchUrl } from '../support/couchdb.ts'

export interface TestCallersOptions {
  readonly url?: string
  readonly clock?: Clock
  /** In place of CouchDB. */
  readonly whoIs?: WhoIs
  /** Called for each question. */
  readonly onAsked?: () => void
}

/** Clients are told apart by a header of the test's. */
export function createTestCallers(options: TestCallersOptions = {}): CallerOf {
  const { url = couchUrl(), clock = systemClock, onAsked } = options
  const sessions = createSessions({ url })
  onTestFinished(() => sessions.close())
  const whoIs: WhoIs = (...question) => {
    onAsked?.()
    return (options.whoIs ?? sessions.whoIs)(...question)
  }
  const clientOf: Parameters<typeof createCallers>[0]['clientOf'] = (c) => c.req.header('x-test-client') ?? '192.0.2.1'
  return createCallers({ sessions: { whoIs, own: sessions.own }, clientOf, clock })
}
