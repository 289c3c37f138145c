import type { Logger } from 'pino'
import { ConfigError, SidecarError } from '../core/errors.ts'

/**
 * The interface of `couchdb-sidecar-embedded`: a CouchDB and a mail server for trials and tests. The package is
 * separate, and known only by this interface, so that production never sees it.
 */
export interface Embedded {
  startCouch(options: { readonly log: Logger; readonly signal: AbortSignal }): Promise<EmbeddedCouch>
  startMailCatcher(options: { readonly log: Logger }): Promise<MailCatcher>
}

export interface EmbeddedCouch {
  /** URL with the admin's credentials. */
  readonly url: string
  close(): Promise<void>
}

/** A message as received. */
export interface CaughtMail {
  /** Counts from 1, never reused. */
  readonly id: number
  readonly from: string
  /** Addresses that the message was delivered to. */
  readonly to: readonly string[]
  readonly subject: string
  readonly text: string
  readonly html: string
  readonly messageId: string
  readonly receivedAt: string
}

export interface MailCatcher {
  readonly smtpUrl: string
  /** The newest last. */
  readonly mails: readonly CaughtMail[]
  close(): Promise<void>
}

interface Options {
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Throws like `standIn`. */
export const startEmbeddedCouch = ({ log, signal }: Options): Promise<EmbeddedCouch> =>
  standIn('COUCHDB_URL', (embedded) => embedded.startCouch({ log, signal }), signal)

/** Throws like `standIn`. */
export const startMailCatcher = ({ log, signal }: Options): Promise<MailCatcher> =>
  standIn('SMTP_URL', (embedded) => embedded.startMailCatcher({ log }), signal)

const PACKAGE: string = 'couchdb-sidecar-embedded'
const load = () => import(PACKAGE) as Promise<Embedded>

/**
 * Starts the embedded server for a missing setting. Throws `ConfigError` if the package is not installed,
 * `SidecarError` (code `embedded`) if the server does not start, and the signal's reason.
 */
export async function standIn<T>(
  setting: string,
  start: (embedded: Embedded) => Promise<T>,
  signal: AbortSignal,
  find = load,
): Promise<T> {
  const embedded = await find().catch((thrown: unknown) => {
    if (!isMissing(thrown)) throw thrown
    throw new ConfigError([
      `${setting}: expected a URL, got nothing, and ${PACKAGE}, which would stand in for it, is not installed: ` +
        `set ${setting}, or npm install ${PACKAGE}`,
    ])
  })
  try {
    return await start(embedded)
  } catch (thrown) {
    signal.throwIfAborted()
    throw new SidecarError('embedded', (thrown as Error).message, { cause: thrown })
  }
}

const isMissing = (thrown: unknown): boolean =>
  thrown instanceof Error && 'code' in thrown && thrown.code === 'ERR_MODULE_NOT_FOUND'
