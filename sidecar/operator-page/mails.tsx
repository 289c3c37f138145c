import type { StuckGroup } from '../databases/stuck.ts'
import { noMails } from '../mail/mail-metrics.ts'
import type { RecentMail } from '../mail/recent-mails.ts'
import { sumOf } from './activity.tsx'
import { documentPath, grouped, Layout, Table, Text, Time, type Viewer } from './layout.tsx'
import type { Lines } from './series.ts'
import { Stuck } from './stuck.tsx'

/** An attempt to send a mail, and its worker; undefined: the worker that serves the page. */
export interface MailAttempt extends RecentMail {
  readonly worker?: string
}

interface MailsProps {
  readonly viewer: Viewer
  /** Host and port. */
  readonly server: string
  readonly from: string
  /** URL of the page of caught mails; undefined if mails are sent, or the page is not served. */
  readonly mailbox: string | undefined
  readonly isCaught: boolean
  /** Lines of all workers together. */
  readonly lines: Lines
  /** Newest first. */
  readonly attempts: readonly MailAttempt[]
  /** Stuck documents, for any reason. */
  readonly groups: readonly StuckGroup[]
}

const CODES: ReadonlySet<string | undefined> = new Set(Object.keys(noMails().failed))

/** Shows sent mails, failed attempts, and the documents that wait for a mail. */
export const Mails = ({ viewer, server, from, mailbox, isCaught, lines, attempts, groups }: MailsProps) => {
  const { mailsSent, mailsFailed } = sumOf(lines.hour.points)
  const unsent = groups.filter(({ code }) => CODES.has(code))
  return (
    <Layout title="Mails" current="/mails" isLive="slowly" viewer={viewer}>
      <p role="status" class={mailsFailed > 0 || unsent.length > 0 ? 'bad' : ''}>
        {`In the last hour ${inWords(mailsSent, 'mail was', 'mails were')} sent, and ${inWords(mailsFailed, 'attempt', 'attempts')} failed.`}
      </p>
      <p>
        {isCaught ? (
          <>
            No mail leaves this machine: a mail catcher takes them.{' '}
            {mailbox && <a href={mailbox}>Read the mails that were caught</a>}
          </>
        ) : (
          <Text of={`Mails go to the mail server ${server}, from ${from}.`} />
        )}
      </p>
      {unsent.length > 0 && <Stuck title="Documents whose mail was not sent" groups={unsent} viewer={viewer} />}
      <section>
        <h2 id="attempts">Recent attempts</h2>
        {attempts.length === 0 ? (
          <p>None yet.</p>
        ) : (
          <Table labelledby="attempts" columns={['Time', 'Document', 'To', 'Result', 'Worker']}>
            {attempts.map(({ at, database, id, to, failure, worker }) => (
              <tr>
                <td>
                  <Time at={at} />
                </td>
                <th scope="row">
                  <a href={documentPath(database, id)}>
                    <Text of={`${id} in ${database}`} />
                  </a>
                </th>
                <td>
                  <Text of={to} />
                </td>
                <td class="text">
                  <span class={`status ${failure ? 'failed' : ''}`}>{failure ? 'failed' : 'sent'}</span>{' '}
                  {failure && <Text of={`${failure.code}: ${failure.reason}`} />}
                </td>
                <td>
                  <Text of={worker ?? 'this one'} />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </section>
    </Layout>
  )
}

const inWords = (count: number, one: string, many: string) => `${grouped(count)} ${count === 1 ? one : many}`
