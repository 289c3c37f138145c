import { createHash } from 'node:crypto'
import type { DbName } from '../accounts/account-names.ts'
import type { Address } from '../accounts/owner.ts'

const digest = (...texts: readonly (string | number)[]) =>
  createHash('sha256').update(JSON.stringify(texts)).digest('hex').slice(0, 32)

/** Normalises a name: names that look the same become equal. */
export const normaliseName = (name: string): string => name.trim().normalize('NFC')

/** Id of a channel's record: one for each name of an owner. The user's id is random, so this id cannot be guessed. */
export const recordIdOf = (userId: string, name: string): string => `channel:${digest(userId, normaliseName(name))}`

/**
 * Name of a channel's database, and of its role. Each life of a channel has another name. Members cannot derive the
 * name: the record's id, which they know, is not enough.
 */
export const databaseNameOf = (userId: string, name: string, life: number): DbName =>
  `channel-${digest(userId, normaliseName(name), life)}` as DbName

/** Id of the subscription to a channel: the same for every device that makes it. */
export const subscriptionIdOf = (channelId: string): string => `subscription:${channelId}`

/** Id of a `channel_end` document: one for each life of a channel. */
export const endIdOf = (database: DbName): string => `ended:${database}`

/** Id of an invitation: a member gets one mail in each life of a channel. */
export const invitationIdOf = (database: DbName, member: Address): string => `invitation:${digest(database, member)}`
