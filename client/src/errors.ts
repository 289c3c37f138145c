export type ClientErrorCode =
  /** An argument that no server could take. */
  | 'bad_argument'
  /** There is no WebCrypto: the page is neither on https nor on localhost. */
  | 'insecure_context'
  /** `register` comes first; offline is fine. */
  | 'not_registered'
  /** This device belongs to another user. */
  | 'registered'
  /** No such channel, or device, in the user's control database. */
  | 'unknown'
  /** What was asked cannot be done in the state that it is in. */
  | 'wrong_state'
  /** Only the owner of a channel may do that. */
  | 'not_yours'
  /** The local data is being synced. */
  | 'in_use'

/** What the app did wrong, or has to tell its user. What the network or a server does is in the status. */
export class ClientError extends Error {
  override readonly name = 'ClientError'
  readonly code: ClientErrorCode

  constructor(code: ClientErrorCode, message: string) {
    super(message)
    this.code = code
  }
}
