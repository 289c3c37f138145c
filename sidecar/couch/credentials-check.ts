import type { Logger } from 'pino'
import { z } from 'zod'
import type { Clock } from '../core/clock.ts'
import type { Couch } from './client.ts'
import { CouchError } from './couch-errors.ts'

/** CouchDB refuses the right password, too, until it has hashed the one in its configuration: a second or so after it starts. */
const SECOND_TRY_MS = 3_000
/** CouchDB locks a name out for an address after five wrong passwords within five minutes. */
const AGAIN_MS = 110_000
/** Between two looks at a login that is right. */
const WATCH_MS = 10_000

export interface CredentialsCheckOptions {
  readonly couch: Couch
  readonly clock: Clock
  readonly log: Logger
}

/** Whether CouchDB takes the sidecar for a server admin. */
export interface CredentialsCheck {
  /** Why not, as it was last known; `undefined` while it does, or cannot be asked. */
  readonly refusal: string | undefined
  /**
   * Resolves when CouchDB takes the sidecar for a server admin, or cannot be asked: each part waits for CouchDB by itself.
   * A wrong password is tried alone, and seldom: all that wants something at the start would lock the admin out.
   */
  untilAccepted(signal: AbortSignal): Promise<void>
  /** Looks again every few seconds, until the signal. */
  watch(signal: AbortSignal): Promise<void>
}

export function createCredentialsCheck({ couch, clock, log }: CredentialsCheckOptions): CredentialsCheck {
  let refusal: string | undefined
  let wrongPasswords = 0 // in a row

  /** How long to wait before the next look, milliseconds. */
  async function look(signal: AbortSignal): Promise<number> {
    const { kind, reason } = await ask(couch, signal)
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

async function ask(couch: Couch, signal: AbortSignal): Promise<Answer> {
  try {
    const { userCtx } = await couch.request({ db: '_session', signal }, session)
    if (!userCtx || userCtx.roles.includes('_admin')) return { kind: 'accepted' }
    const reason = userCtx.name === null ? 'it has no name' : `${userCtx.name} is no server admin`
    return { kind: 'refused', reason }
  } catch (thrown) {
    if (!(thrown instanceof CouchError)) throw thrown
    const { code, message: reason } = thrown
    if (code === 'unauthorized') return { kind: 'wrong password', reason }
    if (code === 'forbidden') return { kind: 'refused', reason } // locked out: a try counts no more
    return { kind: 'unknown' }
  }
}

const session = z.object({
  userCtx: z.object({ name: z.string().nullable(), roles: z.array(z.string()) }).optional(),
})
