/** A message as a handler gives it. Addresses and subject are refused if they hold a line break. */
export interface Message {
  readonly to: string
  readonly subject: string
  readonly text: string
  readonly html?: string
}

/** `ctx.mail`: bound to the entry, so that the Message-ID is the same on every try. */
export interface Mail {
  /**
   * Resolves when the server has accepted the message (or had accepted it on an earlier try of this entry).
   * Throws `Reject` where it never will (a 5xx answer, a malformed address); anything else thrown is worth another try.
   */
  send(message: Message): Promise<void>
}

/** Where the engine gets an entry's mail from. */
export interface MailBinding {
  /** `done`: the Message-IDs that earlier tries of this entry saw accepted; the answer's `done` has the new ones too. */
  forEntry(entry: {
    readonly key: string
    readonly done: readonly string[]
    readonly signal: AbortSignal
  }): Mail & { readonly done: readonly string[] }
}
