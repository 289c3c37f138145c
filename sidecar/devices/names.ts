import { createHash } from 'node:crypto'
import { readableAddress } from '../mail/address.ts'

const digest = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 32)

/**
 * One spelling for an address: case, Unicode composition and the ASCII form of an international domain do not make
 * another owner. Nothing else is changed: what dots and plus signs mean is the mail provider's affair.
 */
export const normaliseAddress = (address: string): string =>
  readableAddress(address.trim().toLowerCase().normalize('NFC'))

/**
 * Who reads what goes to an address, as far as one can guess: what follows a plus, and dots, make no other mailbox with most
 * providers. For counting alone, where a wrong guess makes two people share a number.
 */
function mailboxOf(address: string): string {
  const normal = normaliseAddress(address)
  const [local = '', domain = ''] = normal.split('@')
  const name = local.replace(/(?!^)\+.*$/, '').replaceAll('.', '')
  return `${name}@${domain}`
}

/** Names a mailbox in ids without showing the address. */
export const mailboxHashOf = (address: string): string => digest(mailboxOf(address))

/** The CouchDB user of a device: derived, so that two runs make the same one, and never a name that a client chose. */
export const userNameOf = (deviceId: string): string => `device-${digest(deviceId)}`

/** The document of that user in `_users`. */
export const userIdOf = (name: string): string => `org.couchdb.user:${name}`

/** The role that all devices of one owner share. */
export const ownerRoleOf = (owner: string): string => `owner-${digest(normaliseAddress(owner))}`

/** The document in which the guesses of a device's code are counted. */
export const guessesIdOf = (deviceId: string): string => `guesses:${digest(deviceId)}`

/** Names an owner in ids and logs without showing the address. */
export const ownerHashOf = (owner: string): string => digest(normaliseAddress(owner))
