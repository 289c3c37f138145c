/** What a registration sends to the inbox, and what it takes from a fate. */
import { sha256 } from './credentials.ts'
import type { Fate } from './inbox.ts'
import type { Registration } from './registration.ts'

/** The same each time, to the byte: then the inbox knows a repetition. */
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

export const revOf = ({ _rev: rev }: Fate) => (rev === undefined ? {} : { rev })

/** A state that is known here; one that a later server may have is passed over. */
const STATES = ['new', 'confirming', 'confirmed', 'active', 'expired', 'error', 'revoked'] as const

export function withFate(before: Registration, fate: Fate): Partial<Registration> {
  const state = STATES.find((known) => known === fate.state) ?? before.state
  const { user, database, syncpoint, error } = fate
  const isOther = before.database !== undefined && database !== undefined && before.database !== database
  if (isOther) {
    const reason = `expected the control database ${before.database}, with which the local one was synced, got ${database}`
    return { state: 'error', error: { code: 'other_database', reason: `${reason}; call destroy, and register anew` } }
  }
  return {
    ...{ state, ...revOf(fate) },
    ...(state === 'error' && { error: { code: error?.code ?? 'error' } }),
    ...(user !== undefined && { user }),
    ...(database !== undefined && { database }),
    ...(syncpoint !== undefined && { syncpoint }),
  }
}
