import { Agent, request } from 'undici'
import { CouchError, codeOf } from './errors.ts'
import { withDeadline } from './deadline.ts'

/** Who CouchDB takes the sender of a request for. Nobody in particular has the name `null`. */
export interface Caller {
  readonly name: string | null
  readonly roles: readonly string[]
}

/** The headers with which somebody says who they are. */
export interface Credentials {
  readonly authorization?: string | undefined
  readonly cookie?: string | undefined
}

/** `undefined` where CouchDB refuses the credentials. Throws `CouchError` where it cannot be asked. */
export type WhoIs = (credentials: Credentials, signal: AbortSignal) => Promise<Caller | undefined>

export interface Sessions {
  readonly whoIs: WhoIs
  close(): Promise<void>
}

const TIMEOUT_MS = 5_000
const MAX_CONNECTIONS = 4
/** 401 for a wrong password, 400 for credentials that are none (a malformed cookie), 403 for a user locked out. */
const REFUSALS: readonly number[] = [400, 401, 403]

/**
 * Asks CouchDB who somebody is, with nothing but their own credentials: over connections of its own, so that the
 * sidecar's can never be mistaken for theirs.
 *
 * @param url of the server; credentials in it are not used
 */
export function createSessions({ url }: { url: string }): Sessions {
  const { origin, pathname } = new URL(url)
  const target = `${origin}${pathname.replace(/\/+$/, '')}/_session`
  const agent = new Agent({ connections: MAX_CONNECTIONS, keepAliveTimeout: TIMEOUT_MS })
  const name = 'GET /_session'

  return {
    async whoIs({ authorization, cookie }, signal) {
      const headers = {
        accept: 'application/json',
        ...(authorization === undefined ? {} : { authorization }),
        ...(cookie === undefined ? {} : { cookie }),
      }
      return withDeadline(name, TIMEOUT_MS, signal, async (deadline) => {
        const { statusCode, body } = await request(target, { dispatcher: agent, headers, signal: deadline }).catch(
          (thrown: unknown) => {
            throw new CouchError('unreachable', { request: name, reason: (thrown as Error).message }, { cause: thrown })
          },
        )
        const text = await body.text()
        if (REFUSALS.includes(statusCode)) return undefined
        if (statusCode !== 200) throw new CouchError(codeOf(statusCode), { request: name, status: statusCode })
        return callerFrom(name, text)
      })
    },
    close: () => agent.destroy(),
  }
}

function callerFrom(request: string, text: string): Caller {
  try {
    const { name, roles } = (JSON.parse(text) as { userCtx: Caller }).userCtx
    return { name, roles: [...roles] }
  } catch (cause) {
    throw new CouchError('garbled', { request, reason: 'the answer is no session' }, { cause })
  }
}
