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

export interface MailEntry {
  /** Stable over the tries of one entry. */
  readonly key: string
  /** Message-IDs that the server had accepted on earlier tries. */
  readonly done: readonly string[]
  /** Ends the waiting for a connection; a message that is being handed over gets its answer. */
  readonly signal: AbortSignal
}

/** `ctx.mail`, with what the engine has to remember. */
export interface EntryMail extends Mail {
  /** Message-IDs accepted so far, on earlier tries and on this one. */
  readonly done: readonly string[]
}

/** Where the engine gets an entry's mail from. */
export interface MailBinding {
  forEntry(entry: MailEntry): EntryMail
}
