import { createHash } from 'node:crypto'
import type { DbName } from '../accounts/account-names.ts'
import type { Address } from '../accounts/owner.ts'

const digest = (...texts: readonly (string | number)[]) =>
  createHash('sha256').update(JSON.stringify(texts)).digest('hex').slice(0, 32)

/** One spelling for a name: two that look the same are the same. */
export const normaliseName = (name: string): string => name.trim().normalize('NFC')

/** One record for each name of an owner. The user's id is random, so it cannot be guessed. */
export const recordIdOf = (userId: string, name: string): string => `channel:${digest(userId, normaliseName(name))}`

/**
 * Of the database and of the role. Each life of a channel has its own, which does not follow from what its members know:
 * the id of the record is not enough.
 */
export const databaseNameOf = (userId: string, name: string, life: number): DbName =>
  `channel-${digest(userId, normaliseName(name), life)}` as DbName

/** One subscription for a channel, whichever device makes it. */
export const subscriptionIdOf = (channelId: string): string => `subscription:${channelId}`

/** One for each life of a channel. */
export const endIdOf = (database: DbName): string => `ended:${database}`

/** One mail for a member in each life of a channel. */
export const invitationIdOf = (database: DbName, member: Address): string => `invitation:${digest(database, member)}`
