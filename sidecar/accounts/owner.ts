import { createHash } from 'node:crypto'
import type { Brand } from '../core/brand.ts'
import { readableAddress } from '../mail/address.ts'

/** A normalised address: two addresses of one owner are equal. */
export type Address = Brand<'Address'>

/** Identifies an owner in ids and logs without showing the address. */
export type OwnerHash = Brand<'OwnerHash'>

const digest = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 32)

/**
 * Normalises an address: case, Unicode composition and the ASCII form of an international domain do not make another
 * owner. Dots and plus signs stay: only the mail provider knows their meaning.
 */
export const normaliseAddress = (address: string): Address =>
  readableAddress(address.trim().toLowerCase().normalize('NFC')) as Address

export const ownerHashOf = (owner: Address): OwnerHash => digest(owner) as OwnerHash

/** The role that all devices of one owner share. */
export const ownerRoleOf = (owner: Address): string => `owner-${ownerHashOf(owner)}`

/** Identifies a mailbox in ids without showing the address. */
export const mailboxHashOf = (address: string): string => digest(mailboxOf(address))

/**
 * The mailbox that an address probably belongs to: most providers ignore dots, and the text after a plus. Only for
 * counting mails: if the guess is wrong, two people share one quota.
 */
function mailboxOf(address: string): string {
  const [local = '', domain = ''] = normaliseAddress(address).split('@')
  const name = local.replace(/(?!^)\+.*$/, '').replaceAll('.', '')
  return `${name}@${domain}`
}
