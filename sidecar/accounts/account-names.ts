import { createHash, randomBytes } from 'node:crypto'
import type { Brand } from '../core/brand.ts'
import { ownerHashOf, type Address } from './owner.ts'

/** Name of a database that the sidecar makes, opens to roles and deletes. A client never chooses such a name. */
export type DbName = Brand<'DbName'>

/** Id of an account. An address has one account, wherever the address first appears. */
export const accountIdOf = (address: Address): string => `account:${ownerHashOf(address)}`

/** Prefix of the user ids of one control database: a server may have several control databases. */
const prefixOf = (controlDb: string) => `user-${createHash('sha256').update(controlDb).digest('hex').slice(0, 8)}-`

/** A random user id. CouchDB shows anyone if a database exists, so a name that follows from the id must be secret. */
export const newUserId = (controlDb: string): string => `${prefixOf(controlDb)}${randomBytes(16).toString('hex')}`

const inHex = (text: string) => Buffer.from(text).toString('hex')

/** Name of a user's database, by CouchDB's convention (`couch_peruser`): the hex of the user's name. */
export const userDatabaseOf = (userId: string): DbName => `userdb-${inHex(userId)}` as DbName

/** Glob for the users' databases. It does not match per-user databases that another program makes for other names. */
export const userDatabasesOf = (controlDb: string): string => `${userDatabaseOf(prefixOf(controlDb))}*`

/** URL of a database for devices. `base` has no trailing slash. */
export const syncpointOf = (base: string, database: string): string => `${base}/${database}`

/** Id of the document that names the account of a database. */
export const ownershipIdOf = (database: string): string => `database:${database}`
