import { ClientError } from '../errors.ts'
import type { Failure, RegistrationStatus } from '../client-status.ts'
import { isLine, isWhole, LINE } from '../text.ts'
import { needsCrypto, randomCode, randomHex, type HashedPassword } from './credentials.ts'

/** A device's registration as it is kept: whatever is sent, is sent from here, and is the same each time. */
export interface Registration {
  /** As the inbox knows it. */
  readonly id: string
  /** With which it asks for its status. */
  readonly secret: string
  readonly password: string
  readonly deviceCode: string
  readonly owner: string
  readonly name?: string
  /** Made when it is known how the server hashes. */
  readonly credentials?: HashedPassword
  readonly state: Exclude<RegistrationStatus['state'], 'none'>
  readonly error?: Failure
  /** The inbox's last one: another mail is asked for by naming it. */
  readonly rev?: string
  readonly wantsMail?: boolean
  readonly confirmation?: Confirmation
  readonly user?: string
  /** The user's control database. What is local has been synced with this one, and with no other. */
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
  /** Address. */
  readonly owner: string
  /** Of the device, for its owner to tell it from others. */
  readonly name?: string
}

/** Of the error of what the server's guard does not take. */
export const REFUSED = 'refused'

/** Sent again, it would be refused again. */
export const isRefused = ({ state, error }: Registration): boolean => state === 'error' && error?.code === REFUSED

/** As the server's own guard has it: what it refuses is told later, offline perhaps much later. */
const ADDRESS =
  /^(?=.{3,254}$)[^\s@<>()[\]\\,;:"\u0000-\u001f\u007f-\u009f]{1,64}@[^\s@<>()[\]\\,;:"\u0000-\u001f\u007f-\u009f]+$/

export const isAddress = (text: unknown): text is string =>
  typeof text === 'string' && ADDRESS.test(text) && isWhole(text)

/**
 * A registration that begins; the one that is there where that goes on. Undefined and finished ones make place for it.
 *
 * @throws ClientError `bad_argument`, `insecure_context`; `registered` where the device is another user's
 */
export function beginRegistration(there: Registration | undefined, { owner, name }: Registering): Registration {
  needsCrypto()
  if (!isAddress(owner)) throw new ClientError('bad_argument', `owner: expected an email address, got ${String(owner)}`)
  if (name !== undefined && !isLine(name, 100))
    throw new ClientError('bad_argument', `name: expected 1 to 100 ${LINE}, got ${JSON.stringify(name)}`)
  const isSame = there !== undefined && sameAddress(there.owner, owner)
  if (there?.database !== undefined && !isSame)
    throw new ClientError('registered', `expected ${there.owner}, whose data is here, got ${owner}; call destroy first`)
  const hasEnded = there?.state === 'expired' || there?.state === 'error' || there?.state === 'revoked'
  if (there && isSame && !hasEnded) return there
  return {
    ...{ id: `device-${randomHex()}`, secret: randomHex(), password: randomHex(), deviceCode: randomCode() },
    ...{ owner, ...(name !== undefined && { name }), state: 'unsent' },
    ...(there?.database !== undefined && { database: there.database }), // its data stays with the same user
  }
}

const sameAddress = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase()

/** What the app is told of it. */
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

/** What the owner copied: the code, or the whole link of the mail. */
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
