import { createHash, randomBytes } from 'node:crypto'
import type { Brand } from '../core/brand.ts'
import { ownerHashOf, type Address } from './owner.ts'

/** The name of a database that the sidecar makes, opens to roles and deletes: never one that a client has chosen. */
export type DbName = Brand<'DbName'>

/** One account for an address, wherever the address first appears. */
export const accountIdOf = (address: Address): string => `account:${ownerHashOf(address)}`

/** Of the users of one control database: several of them may be on one server. */
const prefixOf = (controlDb: string) => `user-${createHash('sha256').update(controlDb).digest('hex').slice(0, 8)}-`

/** It cannot be guessed, nor can the name of the database that follows from it: CouchDB tells anyone whether a database exists. */
export const newUserId = (controlDb: string): string => `${prefixOf(controlDb)}${randomBytes(16).toString('hex')}`

const inHex = (text: string) => Buffer.from(text).toString('hex')

/** CouchDB's own convention (`couch_peruser`): the hex of the user's name. */
export const userDatabaseOf = (userId: string): DbName => `userdb-${inHex(userId)}` as DbName

/** A glob for the databases of the users: not for those that another program makes for other names. */
export const userDatabasesOf = (controlDb: string): string => `${userDatabaseOf(prefixOf(controlDb))}*`

/** The address of a database, as devices are given it. `base` has no slash at its end. */
export const syncpointOf = (base: string, database: string): string => `${base}/${database}`

/** The document that says whose database it is. */
export const ownershipIdOf = (database: string): string => `database:${database}`
