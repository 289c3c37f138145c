import { createHash } from 'node:crypto'

const digest = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 32)

/** Name of a device's CouchDB user. Derived from the id: two runs make the same user, and no client chooses a name. */
export const userNameOf = (deviceId: string): string => `device-${digest(deviceId)}`

/** The id of a user's document in `_users`. */
export const userIdOf = (name: string): string => `org.couchdb.user:${name}`

/** The id of the document that counts wrong codes for a device. */
export const guessesIdOf = (deviceId: string): string => `guesses:${digest(deviceId)}`
