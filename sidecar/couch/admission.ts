import type { Logger } from 'pino'
import { z } from 'zod'
import type { Clock } from '../core/clock.ts'
import type { Couch } from './client.ts'
import { CouchError } from './errors.ts'

/** CouchDB shuts a name for everybody at an address after five wrong passwords within five minutes. */
const AGAIN_MS = 90_000

export interface AdmissionOptions {
  readonly couch: Couch
  readonly clock: Clock
  readonly log: Logger
}

/**
 * Resolves when CouchDB takes its user for a server admin, or cannot be asked: whoever needs it waits for that. A wrong
 * password is tried alone, and seldom: all that wants something at the start would lock the admin out.
 */
export async function untilAdmitted({ couch, clock, log }: AdmissionOptions, signal: AbortSignal): Promise<void> {
  for (;;) {
    const refusal = await refusalOf(couch, signal)
    if (refusal === undefined) return
    const expected = 'COUCHDB_URL: expected the name and password of a server admin'
    log.error({ url: couch.url, reason: refusal, retryInMs: AGAIN_MS }, expected)
    await clock.sleep(AGAIN_MS, signal)
  }
}

async function refusalOf(couch: Couch, signal: AbortSignal): Promise<string | undefined> {
  try {
    const { userCtx } = await couch.request({ db: '_session', signal }, session)
    if (!userCtx || userCtx.roles.includes('_admin')) return undefined
    return userCtx.name === null ? 'it has none' : `${userCtx.name} is none`
  } catch (thrown) {
    if (!(thrown instanceof CouchError)) throw thrown
    return thrown.code === 'unauthorized' || thrown.code === 'forbidden' ? thrown.message : undefined
  }
}

const session = z.object({
  userCtx: z.object({ name: z.string().nullable(), roles: z.array(z.string()) }).optional(),
})
