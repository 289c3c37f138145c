import { ClientError } from '../errors.ts'
import type { Failure, RegistrationStatus } from '../client-status.ts'
import { isLine, isWhole, LINE } from '../text.ts'
import { needsCrypto, randomCode, randomHex, sha256, type HashedPassword } from './credentials.ts'
import type { InboxStatus } from './inbox.ts'

/** A device's registration as stored. All requests are built from it, so a repeated request is identical. */
export interface Registration {
  /** Id in the inbox. */
  readonly id: string
  /** Authorizes requests for the status. */
  readonly secret: string
  readonly password: string
  readonly deviceCode: string
  readonly owner: string
  readonly name?: string
  /** Created once the server's hashing is known. */
  readonly credentials?: HashedPassword
  readonly state: Exclude<RegistrationStatus['state'], 'none'>
  readonly error?: Failure
  /** Last revision in the inbox: a request for another mail names it. */
  readonly rev?: string
  readonly wantsMail?: boolean
  readonly confirmation?: Confirmation
  readonly user?: string
  /** The user's control database: the only one that the local data was synced with. */
  readonly database?: string
  readonly syncpoint?: string
}

export interface Confirmation {
  readonly id: string
  readonly code: string
  readonly state: 'unsent' | 'clicked' | 'used' | 'error'
  readonly error?: Failure
}

export interface Registering {
  /** Email address. */
  readonly owner: string
  /** Name of the device, by which its owner recognizes it. */
  readonly name?: string
}

/** Code of the error if the server's guard refuses the registration. */
export const REFUSED = 'refused'

/** Whether the server refused the registration: it would refuse a repetition, too. */
export const isRefused = ({ state, error }: Registration): boolean => state === 'error' && error?.code === REFUSED

/** The same rule as in the server's guard, whose refusal comes later; offline, perhaps much later. */
const ADDRESS =
  /^(?=.{3,254}$)[^\s@<>()[\]\\,;:"\u0000-\u001f\u007f-\u009f]{1,64}@[^\s@<>()[\]\\,;:"\u0000-\u001f\u007f-\u009f]+$/

export const isAddress = (text: unknown): text is string =>
  typeof text === 'string' && ADDRESS.test(text) && isWhole(text)

/**
 * Starts a registration, or returns the current one if it continues. A registration that has ended is replaced.
 *
 * @throws ClientError `bad_argument`, `insecure_context`; `registered` if the device belongs to another user
 */
export function beginRegistration(current: Registration | undefined, { owner, name }: Registering): Registration {
  needsCrypto()
  if (!isAddress(owner)) throw new ClientError('bad_argument', `owner: expected an email address, got ${String(owner)}`)
  if (name !== undefined && !isLine(name, 100))
    throw new ClientError('bad_argument', `name: expected 1 to 100 ${LINE}, got ${JSON.stringify(name)}`)
  const isSame = current !== undefined && sameAddress(current.owner, owner)
  if (current?.database !== undefined && !isSame)
    throw new ClientError(
      'registered',
      `expected ${current.owner}, whose data is here, got ${owner}; call destroy first`,
    )
  const hasEnded = current?.state === 'expired' || current?.state === 'error' || current?.state === 'revoked'
  if (current && isSame && !hasEnded) return current
  return {
    ...{ id: `device-${randomHex()}`, secret: randomHex(), password: randomHex(), deviceCode: randomCode() },
    ...{ owner, ...(name !== undefined && { name }), state: 'unsent' },
    ...(current?.database !== undefined && { database: current.database }), // its data stays with the same user
  }
}

const sameAddress = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase()

/** The document that registers the device. Each call returns the same bytes, so that the inbox recognizes a repetition. */
export async function deviceDocumentOf({
  id,
  secret,
  owner,
  deviceCode,
  name,
  credentials,
}: Registration): Promise<object> {
  return {
    ...{ _id: id, type: 'device', state: 'new', owner, device_code: deviceCode, ...(name !== undefined && { name }) },
    ...{ credentials, secret_sha256: await sha256(secret) },
  }
}

export async function confirmDocumentOf({ id, secret, deviceCode, confirmation }: Registration): Promise<object> {
  return {
    ...{ _id: confirmation!.id, type: 'confirm', state: 'clicked', device_id: id, device_code: deviceCode },
    ...{ confirm_code: confirmation!.code, secret_sha256: await sha256(secret) },
  }
}

export const revOf = ({ _rev: rev }: InboxStatus) => (rev === undefined ? {} : { rev })

/** The known states; a later server's new state is ignored. */
const STATES = ['new', 'confirming', 'confirmed', 'active', 'expired', 'error', 'revoked'] as const

export function withStatus(before: Registration, status: InboxStatus): Partial<Registration> {
  const state = STATES.find((known) => known === status.state) ?? before.state
  const { user, database, syncpoint, error } = status
  const isOther = before.database !== undefined && database !== undefined && before.database !== database
  if (isOther) {
    const reason = `expected the control database ${before.database}, with which the local one was synced, got ${database}`
    return { state: 'error', error: { code: 'other_database', reason: `${reason}; call destroy, and register anew` } }
  }
  return {
    ...{ state, ...revOf(status) },
    ...(state === 'error' && { error: { code: error?.code ?? 'error' } }),
    ...(user !== undefined && { user }),
    ...(database !== undefined && { database }),
    ...(syncpoint !== undefined && { syncpoint }),
  }
}

/** The registration as the app sees it. */
export function registrationStatus(kept: Registration | undefined, failure: Failure | undefined): RegistrationStatus {
  if (!kept) return { state: 'none' }
  const { state, owner, name, deviceCode, user, error, confirmation } = kept
  return {
    ...{ state, owner, deviceCode },
    ...(name !== undefined && { name }),
    ...(user !== undefined && { user }),
    ...(error && { error }),
    ...(confirmation && {
      confirmation: { state: confirmation.state, ...(confirmation.error && { error: confirmation.error }) },
    }),
    ...(failure && { failure }),
  }
}

/** Returns the code in the text that the owner copied: the code itself, or the link of the mail. */
export function codeIn(text: string): string {
  const code =
    text
      .trim()
      .split('/')
      .at(-1)
      ?.replace(/[?#].*$/, '') ?? ''
  if (code === '') throw new ClientError('bad_argument', 'expected the code of the mail, or its link, got nothing')
  return code
}
