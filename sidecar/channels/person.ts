import { accountIdOf } from '../accounts/account-names.ts'
import { normaliseAddress, type Address } from '../accounts/owner.ts'
import type { StoredAccount } from '../accounts/account-documents.ts'
import type { Database } from '../couch/database.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { pages } from '../docstate/finding/pages.ts'
import type { Device } from '../devices/device-documents.ts'
import { isRecord, type StoredRecord } from './channel-documents.ts'

/** The account, devices and channels of one address. */
export interface Person {
  readonly address: Address
  /** Undefined before the first device is confirmed. */
  readonly account: StoredAccount | undefined
  /** All devices, also unconfirmed ones. */
  readonly devices: readonly (Device & StoredDoc)[]
  /** Channels that the user owns or is a member of. */
  readonly channels: readonly StoredRecord[]
  /** True if more unconfirmed devices exist than were searched. */
  readonly isCut: boolean
}

/** States of devices that have no account yet. */
const UNCONFIRMED = ['new', 'confirming', 'confirmed', 'expired', 'error'] as const
/** Maximum number of unconfirmed devices to search, of all addresses: the list is by state, not by address. */
const MOST_LOOKED_AT = 5000

/** Finds the documents of one address. Throws `CouchError`. @param control the control database */
export async function findPerson(control: Database, given: string, signal: AbortSignal): Promise<Person> {
  const address = normaliseAddress(given)
  const account = (await control.find(accountIdOf(address), {}, { signal })) as StoredAccount | undefined
  const confirmed = await control.getMany(account?.devices ?? [], { signal })
  const unconfirmed: StoredDoc[] = []
  let looked = 0
  for (const state of UNCONFIRMED)
    for await (const rows of pages(control, { startkey: ['device', state], endkey: ['device', state, {}] }, signal)) {
      if ((looked += rows.length) > MOST_LOOKED_AT) break
      const ids = rows.map(({ id }) => id)
      const docs = await control.getMany(ids, { signal })
      unconfirmed.push(...docs.filter(({ owner }) => normaliseAddress(String(owner)) === address))
    }
  const all = new Map([...confirmed, ...unconfirmed].map((doc) => [doc._id, doc as Device & StoredDoc]))
  const records = await control.getMany(account?.channels ?? [], { signal })
  return {
    address,
    account,
    devices: [...all.values()],
    channels: records.filter(isRecord),
    isCut: looked > MOST_LOOKED_AT,
  }
}
