import type { StoredAccount } from '../../accounts/account-documents.ts'
import type { CallOptions, Database } from '../../couch/database.ts'
import { readInParts } from '../../couch/read-in-parts.ts'
import type { StoredDevice } from '../../devices/device-documents.ts'
import { isRecord, type StoredRecord } from '../channel-documents.ts'

/** The devices and channel records that define what a user must have. */
export interface DesiredState {
  readonly devices: readonly StoredDevice[]
  readonly records: readonly StoredRecord[]
  /** Equal for equal desired states. */
  readonly revs: string
}

/** Reads the documents by id: a cluster then answers from as many copies as a write needs. Throws `CouchError`. */
export async function readDesiredState(
  control: Database,
  account: StoredAccount,
  call: CallOptions,
): Promise<DesiredState> {
  const devices = (await readInParts(control, account.devices, call)).filter(
    (doc): doc is StoredDevice => doc.type === 'device' && doc.owner_role === account.owner_role,
  )
  const records = (await readInParts(control, account.channels, call)).filter(isRecord)
  return { devices, records, revs: [...devices, ...records].map(({ _id, _rev }) => `${_id} ${_rev}`).join() }
}
