import type { Person } from '../channels/person.ts'
import { mayMailAgain, mayRevoke } from '../devices/operate.ts'
import type { StateCount } from '../docstate/operator/count-documents.ts'
import { documentPath, grouped, Hidden, Layout, listPath, Table, Text, type Viewer } from './layout.tsx'

interface PersonProps {
  readonly viewer: Viewer
  /** The typed address. */
  readonly address: string | undefined
  readonly person: Person | undefined
  /** The control database. */
  readonly controlDb: string
  /** Counts of its documents; undefined while they are not known. */
  readonly counts: readonly StateCount[] | undefined
}

/** Shows the devices and channels of one user, or the numbers of all. The address must be typed: the page lists no users. */
export const PersonPage = ({ viewer, address, person, controlDb, counts }: PersonProps) => (
  <Layout title="Devices and channels" current="/person" isLive="slowly" viewer={viewer}>
    <search>
      <form method="get" action="/person" class="filter">
        <div>
          <label for="address">Email address of a user</label>
          <input id="address" name="address" type="email" value={address ?? ''} required />
        </div>
        <button>Show</button>
      </form>
    </search>
    {person ? (
      <>
        <p role="status">{summaryOf(person)}</p>
        <Devices {...{ viewer, person, controlDb }} />
        <Channels {...{ viewer, person, controlDb }} />
      </>
    ) : (
      <Everyone {...{ controlDb, counts }} />
    )}
  </Layout>
)

const KINDS = [
  ['account', 'Accounts'],
  ['device', 'Devices'],
  ['channel_record', 'Channels'],
] as const

const Everyone = ({ controlDb, counts }: Pick<PersonProps, 'controlDb' | 'counts'>) => (
  <section>
    <h2 id="everyone">All users</h2>
    {counts === undefined ? (
      <p>The documents are being counted.</p>
    ) : !counts.some(({ type }) => KINDS.some(([kind]) => kind === type)) ? (
      <p>No user yet.</p>
    ) : (
      <Table labelledby="everyone" columns={['Kind', 'State', 'Status', 'Documents']}>
        {KINDS.flatMap(([type, name]) =>
          counts
            .filter((count) => count.type === type)
            .map(({ state, status, count }) => (
              <tr>
                <th scope="row">{name}</th>
                <td>
                  <Text of={state} />
                </td>
                <td>
                  <span class={`status ${status}`}>{status}</span>
                </td>
                <td class="number">
                  <a href={listPath({ db: controlDb, type, state, status })}>{grouped(count)}</a>
                </td>
              </tr>
            )),
        )}
      </Table>
    )}
  </section>
)

function summaryOf({ account, devices, isCut }: Person): string {
  const cut = isCut ? ' Too many devices wait to be confirmed: some were not searched.' : ''
  if (!account && devices.length === 0) return `No user has this address.${cut}`
  return `${account ? `The account is ${String(account.state)}.` : 'No account yet: no device is confirmed.'}${cut}`
}

type Part = Pick<PersonProps, 'viewer' | 'controlDb'> & { readonly person: Person }

const Devices = ({ viewer, person: { address, devices }, controlDb }: Part) => (
  <section>
    <h2 id="devices">Devices</h2>
    {devices.length === 0 ? (
      <p>None.</p>
    ) : (
      <Table labelledby="devices" columns={['Device', 'State', 'Reason', '']}>
        {devices.map((device) => (
          <tr>
            <th scope="row">
              <a href={documentPath(controlDb, device._id)}>
                <Text of={device.name ?? device._id} />
              </a>
            </th>
            <td>
              <span class={`status ${device.state === 'error' ? 'failed' : ''}`}>
                <Text of={String(device.state)} />
              </span>
            </td>
            <td>
              <Text of={whyOf(device.error)} />
            </td>
            <td class="actions">
              {viewer.mayAct && (
                <form method="get" action="/act">
                  <Hidden values={{ id: device._id, address }} />
                  {mayMailAgain(device) && (
                    <button name="verb" value="mail">
                      Send the mail again
                    </button>
                  )}
                  {mayRevoke(device) && (
                    <button name="verb" value="revoke" class="quiet">
                      Revoke
                    </button>
                  )}
                </form>
              )}
            </td>
          </tr>
        ))}
      </Table>
    )}
  </section>
)

function whyOf(error: unknown): string {
  const { code, reason } = Object(error) as { code?: unknown; reason?: unknown }
  return [code, reason].filter((part) => typeof part === 'string').join(': ') || '–'
}

const Channels = ({ person: { address, channels }, controlDb }: Part) => (
  <section>
    <h2 id="channels">Channels</h2>
    {channels.length === 0 ? (
      <p>None.</p>
    ) : (
      <Table labelledby="channels" columns={['Channel', 'State', 'Owner', 'Members', 'Database', 'Closed before']}>
        {channels.map((record) => (
          <tr>
            <th scope="row">
              <a href={documentPath(controlDb, record._id)}>
                <Text of={record.name} />
              </a>
            </th>
            <td>
              <span class="status">
                <Text of={String(record.state)} />
              </span>
            </td>
            <td>{record.owner === address ? 'this user' : 'another user'}</td>
            <td class="number">{grouped(record.members.length)}</td>
            <td>
              <Text of={record.database} />
            </td>
            <td class="number">{grouped(record.ended?.length ?? 0)}</td>
          </tr>
        ))}
      </Table>
    )}
  </section>
)
