import type { StoredAccount, Ownership } from '../../accounts/documents.ts'
import { ownershipIdOf, userDatabaseOf } from '../../accounts/names.ts'
import { SidecarError } from '../../core/errors.ts'
import type { Couch } from '../../couch/client.ts'
import type { CallOptions, Database } from '../../couch/database.ts'
import type { Doc, StoredDoc } from '../../couch/documents.ts'
import { isCouchError } from '../../couch/errors.ts'
import type { StoredDevice } from '../../devices/documents.ts'
import { userNameOf } from '../../devices/names.ts'
import type { Context } from '../../docstate/types.ts'
import { isMember, isOpen, isRecord, type StoredRecord } from '../documents.ts'
import { subscriptionIdOf } from '../names.ts'
import { channelCopy, copyIdOf, deviceCopy, subscriptionCopy } from './copies.ts'
import { giveRoles } from './roles.ts'

export interface ReconcileOptions {
  readonly couch: Couch
  readonly control: Database
  /** Makes the database of a user, or what is missing of it. */
  readonly makeUserDatabase: (name: string, role: string, signal: AbortSignal) => Promise<void>
  /** The address of a database, for devices. */
  readonly syncpointOf: (database: string) => string
}

/** As often may something change while it is looked at. */
const TRIES = 20

/**
 * account changed → ready: its database is there, its devices have the roles of its channels and no others, and read of
 * their channels what is true. Whatever is written is read before the truth is, and written with its revision: whoever
 * comes late, with an old truth, writes nothing.
 */
export const reconcile = (options: ReconcileOptions) => async (account: StoredAccount, ctx: Context) => {
  const call = { signal: ctx.signal }
  const hasDevice = (await readDevices(options, account, call)).some(({ state }) => state === 'active')
  if (account.database === undefined && !hasDevice) return { ...account, state: 'ready' as const }
  const database = account.database ?? (await makeTheirs(options, account, ctx.signal))
  for (let tries = 1; tries <= TRIES; tries++) {
    const known = await bringAbout(options, account, database, call)
    if (known) return { ...account, ...known, database, state: 'ready' as const }
  }
  throw new SidecarError('busy', 'something was changed whenever it was looked at')
}

/** First it is said whose it is: what happens in it from its first document on is that user's. */
async function makeTheirs(
  { control, makeUserDatabase }: ReconcileOptions,
  account: StoredAccount,
  signal: AbortSignal,
): Promise<string> {
  const name = userDatabaseOf(account.user_id!)
  const ownership: Ownership = { _id: ownershipIdOf(name), type: 'user_database', account: account._id }
  try {
    await control.put(ownership, { signal })
  } catch (thrown) {
    if (!isCouchError(thrown, 'conflict')) throw thrown // it is there: nobody else has this id
  }
  await makeUserDatabase(name, account.owner_role, signal)
  return name
}

/** The devices and channels that still count; undefined if something has changed meanwhile. */
async function bringAbout(
  options: ReconcileOptions,
  account: StoredAccount,
  name: string,
  call: CallOptions,
): Promise<Pick<StoredAccount, 'devices' | 'channels'> | undefined> {
  const { couch } = options
  const database = couch.db(name)
  const hints = await readRecords(options, account, call)
  const channelIds = hints.map((record) => copyIdOf(record, account))
  const deviceIds = account.devices.map(userNameOf)
  const users = await couch.db('_users').getMany(
    deviceIds.map((id) => `org.couchdb.user:${id}`),
    call,
  )
  const there = byId(await database.getMany([...deviceIds, ...channelIds, ...channelIds.map(subscriptionIdOf)], call))

  const devices = await readDevices(options, account, call)
  const records = await readRecords(options, account, call)
  const open = records.filter((record) => isOpen(record) && isMember(record, account.address))
  const roles = [account.owner_role, ...open.map(({ role }) => role)]
  const active = users.filter((user) => devices.some(({ _id, state }) => _id === user.device_id && state === 'active'))
  if (!(await giveRoles(couch.db('_users'), active, roles, call))) return undefined

  const copies = devices.flatMap((device) => deviceCopy(device, there.get(userNameOf(device._id))) ?? [])
  for (const record of records) {
    const before = there.get(copyIdOf(record, account))
    const copy = channelCopy(record, account, options.syncpointOf, before)
    const channel = { before, now: copy ?? before }
    const subscription = channel.now && there.get(subscriptionIdOf(channel.now._id))
    copies.push(...[copy, subscriptionCopy(record, account, channel, subscription)].filter((doc) => doc !== undefined))
  }
  if (!(await areWritten(database, copies, call))) return undefined
  return {
    devices: devices.filter(({ state }) => state !== 'revoked').map(({ _id }) => _id),
    channels: records
      .filter((record) => (isOpen(record) ? isMember(record, account.address) : record.state !== 'closed'))
      .map(({ _id }) => _id),
  }
}

async function areWritten(database: Database, docs: readonly Doc[], call: CallOptions): Promise<boolean> {
  if (docs.length === 0) return true
  const rows = await database.bulk(
    docs.map((doc) => JSON.stringify(doc)),
    call,
  )
  const refused = rows.find(({ error }) => error !== undefined && error !== 'conflict')
  if (refused) throw new SidecarError('refused', `${database.name} refuses ${refused.id}: ${refused.reason}`)
  return rows.every(({ error }) => error === undefined)
}

async function readDevices({ control }: ReconcileOptions, account: StoredAccount, call: CallOptions) {
  const docs = await control.getMany(account.devices, call)
  return docs.filter((doc) => doc.type === 'device' && doc.owner_role === account.owner_role) as StoredDevice[]
}

const readRecords = async (
  { control }: ReconcileOptions,
  { channels }: StoredAccount,
  call: CallOptions,
): Promise<StoredRecord[]> => (await control.getMany(channels, call)).filter(isRecord)

const byId = (docs: readonly StoredDoc[]) => new Map(docs.map((doc) => [doc._id, doc]))
