import { confirmTexts, inviteTexts } from './built-in-texts.ts'

/** What a template of a kind may use: `{{name}}` and so on. */
export interface MailValues {
  readonly confirm: {
    /** What the device calls itself. */
    readonly name: string
    /** The address of the confirm page. */
    readonly link: string
    /** In words: `24 hours`. */
    readonly expires_in: string
    /** The address that the mail goes to. */
    readonly owner: string
  }
  readonly invite: {
    /** Who invites. */
    readonly owner: string
    /** The address that the mail goes to. */
    readonly member: string
    /** The name of the channel. */
    readonly channel: string
  }
}

export type MailKind = keyof MailValues

/** The mails: their built-in texts, which values are in them, and which must be. */
export const kinds: {
  readonly [K in MailKind]: {
    readonly texts: Readonly<Record<string, string>>
    readonly values: readonly (keyof MailValues[K])[]
    /** Those that strangers have written. They are in no subject: that is read first, and with the least doubt. */
    readonly strangers: readonly (keyof MailValues[K])[]
    /** Without it the mail would be of no use. */
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
