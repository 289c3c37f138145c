/** A message from a handler. Addresses and subject are refused if they contain a line break. */
export interface Message {
  readonly to: string
  readonly subject: string
  readonly text: string
  readonly html?: string
}

/** `ctx.mail`: bound to the entry, so that the Message-ID is the same in every attempt. */
export interface Mail {
  /**
   * Resolves when the server has accepted the message, now or in an earlier attempt of this entry. Throws `Reject` if
   * the server never will (a 5xx answer, a malformed address). Any other error is worth a retry.
   */
  send(message: Message): Promise<void>
}

export interface MailEntry {
  /** The document whose handler sends. */
  readonly document: { readonly database: string; readonly id: string }
  /** The same in all attempts of one entry. */
  readonly key: string
  /** Message-IDs that the server accepted in earlier attempts. */
  readonly done: readonly string[]
  /** Ends the wait for a connection. A message that is being sent still gets its answer. */
  readonly signal: AbortSignal
}

/** `ctx.mail`, with the results that the engine records. */
export interface EntryMail extends Mail {
  /** Message-IDs accepted so far, in earlier attempts and in this one. */
  readonly done: readonly string[]
}

/** Gives the engine the mail of an entry. */
export interface MailBinding {
  forEntry(entry: MailEntry): EntryMail
}
