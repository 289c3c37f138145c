export type ClientErrorCode =
  /** An argument that no server would accept. */
  | 'bad_argument'
  /** WebCrypto is missing: the page is neither on https nor on localhost. */
  | 'insecure_context'
  /** Call `register` first; it works offline. */
  | 'not_registered'
  /** This device belongs to another user. */
  | 'registered'
  /** No such channel, or device, in the user's control database. */
  | 'unknown'
  /** The call is not possible in the current state. */
  | 'wrong_state'
  /** Only the owner of a channel may do that. */
  | 'not_yours'
  /** The local data is being synced. */
  | 'in_use'

/** An error of the app, or one that it must show to its user. Faults of the network or a server are in the status. */
export class ClientError extends Error {
  override readonly name = 'ClientError'
  readonly code: ClientErrorCode

  constructor(code: ClientErrorCode, message: string) {
    super(message)
    this.code = code
  }
}
