/** The documents that a registration sends to the inbox, and the fields that it takes from a status. */
import { sha256 } from './credentials.ts'
import type { InboxStatus } from './inbox.ts'
import type { Registration } from './registration.ts'

/** Each call returns the same bytes, so that the inbox recognizes a repetition. */
export async function deviceDocumentOf({
  id,
  secret,
  owner,
  deviceCode,
  name,
  credentials,
}: Registration): Promise<object> {
  return {
    ...{ _id: id, type: 'device', state: 'new', owner, device_code: deviceCode, ...(name !== undefined && { name }) },
    ...{ credentials, secret_sha256: await sha256(secret) },
  }
}

export async function confirmDocumentOf({ id, secret, deviceCode, confirmation }: Registration): Promise<object> {
  return {
    ...{ _id: confirmation!.id, type: 'confirm', state: 'clicked', device_id: id, device_code: deviceCode },
    ...{ confirm_code: confirmation!.code, secret_sha256: await sha256(secret) },
  }
}

export const revOf = ({ _rev: rev }: InboxStatus) => (rev === undefined ? {} : { rev })

/** The known states; a later server's new state is ignored. */
const STATES = ['new', 'confirming', 'confirmed', 'active', 'expired', 'error', 'revoked'] as const

export function withStatus(before: Registration, status: InboxStatus): Partial<Registration> {
  const state = STATES.find((known) => known === status.state) ?? before.state
  const { user, database, syncpoint, error } = status
  const isOther = before.database !== undefined && database !== undefined && before.database !== database
  if (isOther) {
    const reason = `expected the control database ${before.database}, with which the local one was synced, got ${database}`
    return { state: 'error', error: { code: 'other_database', reason: `${reason}; call destroy, and register anew` } }
  }
  return {
    ...{ state, ...revOf(status) },
    ...(state === 'error' && { error: { code: error?.code ?? 'error' } }),
    ...(user !== undefined && { user }),
    ...(database !== undefined && { database }),
    ...(syncpoint !== undefined && { syncpoint }),
  }
}
