import type { CallOptions, Database } from '../couch/database.ts'
import type { StoredDoc } from '../couch/documents.ts'
import { repeatOnConflict } from '../couch/repeat-on-conflict.ts'
import { readInParts } from '../couch/read-in-parts.ts'
import type { Resolver } from '../docstate/conflicts/merge.ts'
import { normaliseAddress, ownerRoleOf, type Address } from './owner.ts'
import type { Account, Ownership, StoredAccount } from './account-documents.ts'
import { accountIdOf, ownershipIdOf, syncpointOf, type DbName } from './account-names.ts'

/** Entries to add to an account that may not have them yet. */
export interface News {
  /** Id of a device document. */
  readonly device?: string
  /** Id of a channel record. */
  readonly channel?: string
  /** Name of a channel's database that was archived. */
  readonly archived?: DbName
}

/** The accounts, in the control database. Every method throws `CouchError`, or the signal's reason. */
export interface Accounts {
  find(address: Address, options: CallOptions): Promise<StoredAccount | undefined>
  /** Accounts of these addresses; addresses without an account are left out. */
  among(addresses: readonly Address[], options: CallOptions): Promise<readonly StoredAccount[]>
  /** The account that owns this control database; undefined if none does. The database's name alone proves nothing. */
  ofDatabase(database: string, options: CallOptions): Promise<StoredAccount | undefined>
  /** Adds `news` to an account, and has it reconciled, also again. Creates the account if the address has none. */
  notify(address: Address, news: News, options: CallOptions): Promise<StoredAccount>
  /** Has an existing account reconciled again. Does nothing if the address has no account. */
  remind(address: Address, options: CallOptions): Promise<void>
}

/** Maximum tries of a write: many writers may change the same account at once. */
const TRIES = 50

export function createAccounts(control: Database): Accounts {
  const find = async (id: string, options: CallOptions) => asAccount(await control.find(id, {}, options))

  async function write(
    address: Address,
    next: (current: StoredAccount | undefined) => Account | undefined,
    options: CallOptions,
  ): Promise<StoredAccount | undefined> {
    return repeatOnConflict(TRIES, async () => {
      const account = next(await find(accountIdOf(address), options))
      return account && { ...account, _rev: await control.put(account, options) }
    })
  }

  return {
    find: (address, options) => find(accountIdOf(address), options),

    async among(addresses, options) {
      const docs = await readInParts(control, addresses.map(accountIdOf), options)
      return docs.flatMap((doc) => asAccount(doc) ?? [])
    },

    async ofDatabase(database, options) {
      const ownership = (await control.find(ownershipIdOf(database), {}, options)) as Partial<Ownership> | undefined
      if (ownership?.type !== 'user_database' || typeof ownership.account !== 'string') return undefined
      return find(ownership.account, options)
    },

    async notify(address, news, options) {
      return (await write(address, (current) => withNews(current ?? newAccount(address), news), options))!
    },
    async remind(address, options) {
      await write(address, (current) => current && withNews(current, {}), options)
    },
  }
}

const asAccount = (doc: StoredDoc | undefined): StoredAccount | undefined =>
  doc?.type === 'account' ? (doc as StoredAccount) : undefined

function newAccount(address: Address): Account & { state: string } {
  const fields = { address, owner_role: ownerRoleOf(address), devices: [], channels: [] }
  return { _id: accountIdOf(address), type: 'account', state: 'new', ...fields }
}

/**
 * Puts the account into `changed` as a new entry, even if it is in `changed` already: the attempt under way may have
 * read too early. An account without a user id goes to `new` instead, to get an id first.
 */
function withNews({ docstate: _entry, error: _error, ...account }: Account, news: News): Account {
  const { user_id, devices, channels, archived = [] } = account
  const kept = withOne(archived, news.archived)
  return {
    ...account,
    state: user_id === undefined ? 'new' : 'changed',
    devices: withOne(devices, news.device),
    channels: withOne(channels, news.channel),
    ...(kept.length > 0 && { archived: kept }),
  }
}

const withOne = <Id extends string>(known: readonly Id[], id: Id | undefined): readonly Id[] =>
  id === undefined || known.includes(id) ? known : [...known, id]

/** Merges two accounts of one address that a cluster accepted: combines devices and channels, to be reconciled. */
export const mergeAccount: Resolver = ({ ours, theirs }) => {
  const [one, other] = [ours, theirs] as unknown as [Account, Account]
  const database = one.database ?? other.database
  const user_id =
    (one.database !== undefined ? one.user_id : other.database && other.user_id) ?? one.user_id ?? other.user_id
  const archived = [...(one.archived ?? []), ...(other.archived ?? [])]
  return {
    ...one,
    ...(user_id !== undefined && { user_id }),
    ...(database !== undefined && { database }),
    state: user_id === undefined ? 'new' : 'changed',
    devices: [...new Set([...one.devices, ...other.devices])],
    channels: [...new Set([...one.channels, ...other.channels])],
    ...(archived.length > 0 && { archived: [...new Set(archived)] }),
  }
}

/** Name and URL of the control database that holds a user's documents. */
export interface Home {
  readonly database: string
  readonly syncpoint: string
}

/** Finds the control database of an owner; undefined until the account names it. Throws `CouchError`. */
export const findHome =
  (accounts: Pick<Accounts, 'find'>, syncUrl: string) =>
  async (owner: string, options: CallOptions): Promise<Home | undefined> => {
    const database = (await accounts.find(normaliseAddress(owner), options))?.database
    return database === undefined ? undefined : { database, syncpoint: syncpointOf(syncUrl, database) }
  }
