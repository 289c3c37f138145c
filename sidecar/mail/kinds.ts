import { confirmTexts, inviteTexts } from './built-in-texts.ts'

/** Values that the templates of each kind may use: `{{name}}` and so on. */
export interface MailValues {
  readonly confirm: {
    /** Name of the device, which the device has chosen. */
    readonly name: string
    /** URL of the confirm page. */
    readonly link: string
    /** Lifetime of the link in words: `24 hours`. */
    readonly expires_in: string
    /** The address that the mail goes to. */
    readonly owner: string
  }
  readonly invite: {
    /** The address of the user who invites. */
    readonly owner: string
    /** The address that the mail goes to. */
    readonly member: string
    /** The name of the channel. */
    readonly channel: string
  }
}

export type MailKind = keyof MailValues

/** The kinds of mails: their built-in texts, the values that they may use, and the value that they must use. */
export const kinds: {
  readonly [K in MailKind]: {
    readonly texts: Readonly<Record<string, string>>
    readonly values: readonly (keyof MailValues[K])[]
    /** Values that strangers write. No subject has them: readers see the subject first, and doubt it least. */
    readonly strangers: readonly (keyof MailValues[K])[]
    /** A value that the text must have: without it the mail is useless. */
    readonly needs?: keyof MailValues[K]
  }
} = {
  confirm: {
    texts: confirmTexts,
    values: ['name', 'link', 'expires_in', 'owner'],
    strangers: ['name', 'owner'],
    needs: 'link',
  },
  invite: { texts: inviteTexts, values: ['owner', 'member', 'channel'], strangers: ['owner', 'member', 'channel'] },
}

/** The files that a kind of mail is made from. */
export const filesOf = (kind: MailKind) =>
  ({ subject: `${kind}.subject.txt`, text: `${kind}.txt`, html: `${kind}.html` }) as const
