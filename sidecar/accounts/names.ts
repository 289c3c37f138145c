import { createHash, randomBytes } from 'node:crypto'
import { ownerHashOf } from './owner.ts'

/** One account for an address, whoever speaks of it first. */
export const accountIdOf = (address: string): string => `account:${ownerHashOf(address)}`

/** Of the users of one control database: several of them may be on one server. */
const prefixOf = (controlDb: string) => `user-${createHash('sha256').update(controlDb).digest('hex').slice(0, 8)}-`

/** Nobody guesses it, nor the name of a database that follows from it: CouchDB tells whether a database exists. */
export const newUserId = (controlDb: string): string => `${prefixOf(controlDb)}${randomBytes(16).toString('hex')}`

const inHex = (text: string) => Buffer.from(text).toString('hex')

/** CouchDB's own convention (`couch_peruser`): the hex of the user's name. */
export const userDatabaseOf = (userId: string): string => `userdb-${inHex(userId)}`

/** A glob for the databases of the users: not for those that somebody else makes for other names. */
export const userDatabasesOf = (controlDb: string): string => `${userDatabaseOf(prefixOf(controlDb))}*`

/** The address of a database, as devices are given it. `base` has no slash at its end. */
export const syncpointOf = (base: string, database: string): string => `${base}/${database}`

/** The document that says whose database it is. */
export const ownershipIdOf = (database: string): string => `database:${database}`
