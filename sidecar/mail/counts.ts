import type { MailFailure } from './failure.ts'

/** Of mails, as plain numbers. */
export interface MailCounts {
  /** That the mail server has taken. */
  sent: number
  /** Tries that failed. */
  readonly failed: Record<MailFailure, number>
}

export const noMails = (): MailCounts => ({
  sent: 0,
  failed: {
    ...{ mail_unreachable: 0, mail_deferred: 0, mail_login: 0, mail_unanswered: 0, mail_closed: 0 },
    ...{ mail_refused: 0, bad_address: 0, bad_header: 0, bad_message: 0 },
  },
})

/** Not what has ended the try from outside, which says nothing of the mail. */
export function countFailure({ failed }: MailCounts, thrown: unknown): void {
  const code = (thrown as { readonly code?: MailFailure } | undefined)?.code
  if (code !== undefined && Object.hasOwn(failed, code)) failed[code] += 1
}
