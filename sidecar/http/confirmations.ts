/** What the confirm page needs from whoever knows the devices. */

/** What somebody brings who follows the link and types in a code. All of it can be anything. */
export interface Click {
  readonly deviceId: string
  readonly confirmCode: string
  readonly deviceCode: string
  /** Aborts when they go away. */
  readonly signal: AbortSignal
}

export type ClickOutcome =
  /** With the credentials that were made for the device, if it asked for some: this once. */
  | { readonly kind: 'confirmed'; readonly user?: string | undefined; readonly password?: string | undefined }
  /** Wrong, used or unknown: the caller is not told which. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'expired' }
  /** Taken in, but not decided within the time it may take. The same click again is how one looks for the outcome. */
  | { readonly kind: 'pending' }

export interface Confirmations {
  click(click: Click): Promise<ClickOutcome>
}
