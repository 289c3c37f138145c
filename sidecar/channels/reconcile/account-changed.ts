import { same } from '../../../ddocs/lib/same.ts'
import type { Ownership, StoredAccount } from '../../accounts/account-documents.ts'
import { ownershipIdOf, userDatabaseOf } from '../../accounts/account-names.ts'
import { SidecarError } from '../../core/errors.ts'
import type { Couch } from '../../couch/client.ts'
import type { CallOptions, Database } from '../../couch/database.ts'
import { isCouchError } from '../../couch/couch-errors.ts'
import { readInParts } from '../../couch/read-in-parts.ts'
import { isMadeFor } from '../../deploy/make-database.ts'
import { userIdOf, userNameOf } from '../../devices/device-names.ts'
import { forget } from '../../docstate/handler-options.ts'
import type { Context } from '../../docstate/types.ts'
import { isMember, isOpen, type StoredRecord } from '../channel-documents.ts'
import { copiesOf, copyIdsOf } from './copies.ts'
import { invitedTo, mayBeTooMany, type Invited } from './invited.ts'
import { subscriptionIdOf } from '../channel-names.ts'
import { readDesiredState, type DesiredState } from './desired-state.ts'
import type { Doc, StoredDoc } from '../../couch/documents.ts'
import { writtenFrom } from '../../couch/written.ts'

export interface ReconcileOptions {
  readonly couch: Couch
  readonly control: Database
  /** Makes the database of a user, or its missing parts. */
  readonly makeUserDatabase: (name: string, role: string, signal: AbortSignal) => Promise<void>
  /** URL at which devices reach CouchDB. */
  readonly syncUrl: string
}

/** Maximum rounds of reading and writing: a change in between makes another round necessary. */
const TRIES = 20

/**
 * account changed → ready. Reconciles what a user has with the desired state. The user's database exists, and holds a
 * copy of each channel. The user's devices have the roles of the user's channels and no others.
 *
 * Each document is read before the desired state and written with that revision. The desired state is read again at the
 * end. So a worker with an old desired state writes nothing, or notices and repeats.
 */
export const reconcile = (options: ReconcileOptions) => async (account: StoredAccount, ctx: Context) => {
  const call = { signal: ctx.signal }
  const known = await readDesiredState(options.control, account, call)
  const hasDevice = known.devices.some(({ state }) => state === 'active')
  if (account.database === undefined && !hasDevice) {
    const counting = stillCounting(known, account, invitedTo(known.records, account, new Map()))
    const isOver = counting.devices.length === 0 && counting.channels.length === 0 && !account.archived
    const ready = { ...account, ...counting, state: 'ready' as const }
    return isOver ? forget(ready) : ready // the user was invited, but never registered
  }
  const database = await databaseFor(options, account, ctx.signal)
  for (let tries = 1; tries <= TRIES; tries++) {
    const made = await apply(options, account, database, call)
    if (!made || !(await isUnchanged(options, account, made.desired, call))) continue
    return { ...account, ...stillCounting(made.desired, account, made.invited), database, state: 'ready' as const }
  }
  throw new SidecarError('busy', `gave up after ${TRIES} tries: the account ${account._id} kept changing`)
}

/** The desired state that was applied, and the invitations that the user sees. */
interface Applied {
  readonly desired: DesiredState
  readonly invited: Invited
}

/** Writes the ownership before it makes the database: events of the first document already belong to the user. */
async function databaseFor(
  { couch, control, makeUserDatabase }: ReconcileOptions,
  account: StoredAccount,
  signal: AbortSignal,
): Promise<string> {
  const name = account.database ?? userDatabaseOf(account.user_id!)
  if (account.database !== undefined && (await isMadeFor(couch.db(name), account.owner_role, { signal }))) return name
  const ownership: Ownership = { _id: ownershipIdOf(name), type: 'user_database', account: account._id }
  try {
    await control.put(ownership, { signal })
  } catch (thrown) {
    if (!isCouchError(thrown, 'conflict')) throw thrown // it exists: no other account has this id
  }
  await makeUserDatabase(name, account.owner_role, signal)
  return name
}

/**
 * Gives the roles, then writes the copies; undefined if something has changed in the meantime. The roles come first and
 * follow from documents that no device can write. So nothing in the user's own database can delay them.
 */
async function apply(
  options: ReconcileOptions,
  account: StoredAccount,
  name: string,
  call: CallOptions,
): Promise<Applied | undefined> {
  const { couch, control, syncUrl } = options
  const database = couch.db(name)
  const access = await giveAccess(options, account, database, call)
  if (!access) return undefined
  const { desired: given, invited } = access
  const docs = await readInParts(database, copyIdsOf(given.records, account), call)
  const current = new Map(docs.map((doc) => [doc._id, doc]))
  const desired = await readDesiredState(control, account, call)
  if (desired.revs !== given.revs) return undefined
  const copies = copiesOf(desired, account, syncUrl, current, invited.hidden)
  return (await writeCopies(database, copies, call)) ? { desired, invited } : undefined
}

/** Gives the account's devices the roles of its channels, and no others; undefined if one of them changed meanwhile. */
async function giveAccess(
  { couch, control }: ReconcileOptions,
  account: StoredAccount,
  database: Database,
  call: CallOptions,
): Promise<Applied | undefined> {
  const users = couch.db('_users')
  const known = await users.getMany(account.devices.map(idOfUser), call)
  const desired = await readDesiredState(control, account, call)
  const { devices, records } = desired
  const activeIds = devices.filter(({ state }) => state === 'active').map(({ _id }) => idOfUser(_id))
  const subscriptions = mayBeTooMany(records, account)
    ? await readInParts(
        database,
        records.map(({ _id }) => subscriptionIdOf(_id)),
        call,
      )
    : []
  const invited = invitedTo(records, account, new Map(subscriptions.map((doc) => [doc._id, doc])))
  const open = records.filter((record) => isOpenTo(record, account) && !invited.hidden.has(record._id))
  const roles = open.map(({ role }) => role)
  const active = known.filter(({ _id }) => activeIds.includes(_id))
  return (await giveRoles(users, active, [account.owner_role, ...roles], call)) ? { desired, invited } : undefined
}

const idOfUser = (device: string) => userIdOf(userNameOf(device))

const isOpenTo = (record: StoredRecord, { address }: StoredAccount) => isOpen(record) && isMember(record, address)

/** Roles of owners and channels. An operator gave all other roles of a user. */
const OURS = /^(owner|channel)-[0-9a-f]{32}$/

/**
 * Gives these users exactly these owner and channel roles. Removes conflicting revisions of a user's document: they
 * would come back when the document is deleted. True if nothing had to change. Otherwise the caller must check again:
 * another worker may know newer roles, or have written at the same time, and a cluster accepts both writes.
 *
 * @param docs documents of `_users`, read before the desired roles were read
 */
async function giveRoles(
  users: Database,
  docs: readonly StoredDoc[],
  roles: readonly string[],
  call: CallOptions,
): Promise<boolean> {
  let isDone = true
  for (const { _conflicts = [], ...user } of docs) {
    const given = rolesOf(user)
    const wanted = [...given.filter((role) => !OURS.test(role)), ...roles]
    const isRight = same([...given].sort(), [...wanted].sort())
    if (isRight && _conflicts.length === 0) continue
    isDone = false
    try {
      for (const rev of _conflicts) await users.remove(user._id, rev, call)
      if (!isRight) await users.put({ ...user, roles: wanted }, call)
    } catch (thrown) {
      if (!isCouchError(thrown, 'conflict') && !isCouchError(thrown, 'not_found')) throw thrown
    }
  }
  return isDone
}

const rolesOf = ({ roles }: StoredDoc): readonly string[] =>
  Array.isArray(roles) ? roles.filter((role) => typeof role === 'string') : []

async function isUnchanged(
  { control }: ReconcileOptions,
  account: StoredAccount,
  known: DesiredState,
  call: CallOptions,
) {
  const { revs } = await readDesiredState(control, account, call)
  return revs === known.revs
}

/** Drops devices and channels that are over and notified. A channel without a record stays: it may come soon. */
function stillCounting({ devices, records }: DesiredState, account: StoredAccount, { forgotten, answered }: Invited) {
  const gone = new Set([
    ...devices.filter(({ state }) => state === 'revoked').map(({ _id }) => _id),
    ...records.filter((record) => isOver(record, account)).map(({ _id }) => _id),
    ...forgotten,
  ])
  const isLeft = (id: string) => !gone.has(id)
  const channels = account.channels.filter(isLeft)
  const isCounted = mayBeTooMany(records, account)
  return { devices: account.devices.filter(isLeft), channels, ...(isCounted && { answered }) }
}

const isOver = (record: StoredRecord, account: StoredAccount): boolean =>
  record.state === 'closed' || (isOpen(record) && !isOpenTo(record, account))

/** Documents per request. */
const TOGETHER = 50

/** False if another writer changed a document meanwhile. Throws `CouchError`, or `SidecarError` if one is refused. */
async function writeCopies(database: Database, docs: readonly Doc[], call: CallOptions): Promise<boolean> {
  let isDone = true
  for (let from = 0; from < docs.length; from += TOGETHER) {
    const json = docs.slice(from, from + TOGETHER).map((doc) => JSON.stringify(doc))
    const rows = await database.bulk(json, call)
    for (const row of rows) {
      const written = writtenFrom(row)
      if (written.kind === 'refused') {
        throw new SidecarError('refused', `${database.name} refuses ${row.id}: ${written.reason}`)
      }
      isDone &&= written.kind !== 'conflict'
    }
  }
  return isDone
}
