import type { Logger } from 'pino'
import { z } from 'zod'
import type { Clock } from '../core/clock.ts'
import type { Couch } from './client.ts'
import { CouchError } from './couch-errors.ts'

/** For about a second after its start, CouchDB hashes its configured password and refuses even the correct one. */
const SECOND_TRY_MS = 3_000
/** CouchDB locks a name out for an address after five wrong passwords within five minutes. */
const AGAIN_MS = 110_000
/** Interval between checks of a correct login. */
const WATCH_MS = 10_000

export interface CredentialsCheckOptions {
  readonly couch: Couch
  readonly clock: Clock
  readonly log: Logger
}

/** Checks whether CouchDB accepts the sidecar as a server admin. */
export interface CredentialsCheck {
  /** Last known reason of a refusal; `undefined` while CouchDB accepts the sidecar or does not answer. */
  readonly refusal: string | undefined
  /**
   * Resolves when CouchDB accepts the sidecar as a server admin, or does not answer: each part waits for CouchDB.
   * Only this check tries a wrong password, and seldom: requests of all parts at startup would lock the admin out.
   */
  untilAccepted(signal: AbortSignal): Promise<void>
  /** Repeats the check every few seconds, until the signal aborts. */
  watch(signal: AbortSignal): Promise<void>
}

export function createCredentialsCheck({ couch, clock, log }: CredentialsCheckOptions): CredentialsCheck {
  let refusal: string | undefined
  let wrongPasswords = 0 // consecutive

  /** Checks once. Returns the delay before the next check, milliseconds. */
  async function look(signal: AbortSignal): Promise<number> {
    const { kind, reason } = await readSession(couch, signal)
    wrongPasswords = kind === 'wrong password' ? wrongPasswords + 1 : 0
    const waitMs = wrongPasswords === 0 ? WATCH_MS : wrongPasswords === 1 ? SECOND_TRY_MS : AGAIN_MS
    const isNews = reason !== refusal || wrongPasswords > 0
    if (reason !== undefined && isNews) log.error({ url: couch.url, reason, retryInMs: waitMs }, REFUSED)
    if (kind === 'accepted' && refusal !== undefined)
      log.info({ url: couch.url }, 'CouchDB accepts the credentials of the sidecar again')
    refusal = reason
    return waitMs
  }

  return {
    get refusal() {
      return refusal
    },
    async untilAccepted(signal) {
      for (;;) {
        const waitMs = await look(signal)
        if (refusal === undefined) return
        await clock.sleep(waitMs, signal)
      }
    },
    async watch(signal) {
      for (let waitMs = WATCH_MS; ; waitMs = await look(signal)) await clock.sleep(waitMs, signal)
    },
  }
}

const REFUSED = 'CouchDB refuses the sidecar; COUCHDB_URL: expected the name and password of a server admin'

interface Answer {
  readonly kind: 'accepted' | 'refused' | 'wrong password' | 'unknown'
  readonly reason?: string
}

async function readSession(couch: Couch, signal: AbortSignal): Promise<Answer> {
  try {
    const { userCtx } = await couch.request({ db: '_session', signal }, session)
    if (!userCtx || userCtx.roles.includes('_admin')) return { kind: 'accepted' }
    const reason = userCtx.name === null ? 'it has no name' : `${userCtx.name} is not a server admin`
    return { kind: 'refused', reason }
  } catch (thrown) {
    if (!(thrown instanceof CouchError)) throw thrown
    const { code, message: reason } = thrown
    if (code === 'unauthorized') return { kind: 'wrong password', reason }
    if (code === 'forbidden') return { kind: 'refused', reason } // locked out: further tries do not count
    return { kind: 'unknown' }
  }
}

const session = z.object({
  userCtx: z.object({ name: z.string().nullable(), roles: z.array(z.string()) }).optional(),
})
