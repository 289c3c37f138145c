import { createHash } from 'node:crypto'

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
export const databaseNameOf = (userId: string, name: string, life: number): string =>
  `channel-${digest(userId, normaliseName(name), life)}`

/** One subscription for a channel, whichever device makes it. */
export const subscriptionIdOf = (channelId: string): string => `subscription:${channelId}`

/** One for each life of a channel. */
export const endIdOf = (database: string): string => `ended:${database}`

/** One mail for a member in each life of a channel. */
export const invitationIdOf = (database: string, member: string): string => `invitation:${digest(database, member)}`
