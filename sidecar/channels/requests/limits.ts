import { Reject } from '../../core/errors.ts'
import type { StoredAccount } from '../../accounts/documents.ts'
import type { Couch } from '../../couch/client.ts'
import { readDatabases } from '../../couch/survey.ts'
import type { Channel, ChannelRecord, StoredRecord } from '../documents.ts'
import { namedAnew, type Newcomers } from '../records/newcomers.ts'

export interface Limits {
  readonly couch: Couch
  /** The most databases of one owner's channels. */
  readonly channelsPerOwner: number
}

/** Those that are open, and those that were archived and are there yet: only an admin deletes them. */
export async function refuseTooMany(
  { couch, channelsPerOwner: most }: Limits,
  open: readonly StoredRecord[],
  { archived = [] }: StoredAccount,
  signal: AbortSignal,
): Promise<void> {
  if (open.length + archived.length < most) return
  let kept = 0
  for await (const some of readDatabases(couch, archived, signal)) kept += some.size
  if (open.length + kept < most) return
  throw new Reject('too_many_channels', `an owner has ${most} channels at most, with ${kept} that are archived`)
}

/** A few new addresses are people, thousands are an attack on their mailboxes and on the control database. */
export async function refuseCrowd(
  newcomers: Newcomers,
  record: ChannelRecord | undefined,
  request: Channel,
  { address }: StoredAccount,
  signal: AbortSignal,
): Promise<void> {
  const refusal = await newcomers.refusal(address, namedAnew(record, request), { signal })
  if (refusal) throw new Reject(refusal.code, refusal.reason)
}
