import type { Doc } from '../couch/documents.ts'
import type { Close } from './documents.ts'

/** Of a channel, or its record: it is to end, or has ended. */
export const isEnding = ({ state }: Doc): boolean => state === 'closing' || state === 'closed'

/** Of two that are closing: what one of them would keep is kept. */
export const closeOf = (one: Doc, other: Doc): Close =>
  one.close === 'delete' && other.close === 'delete' ? 'delete' : 'archive'

/** By the channel's document: its owner has ended it while it was being made. */
export const isCalledOff = (wish: Doc | undefined): boolean =>
  wish?.type === 'channel' && (wish.state === 'closed' || (wish.state === 'closing' && wish.database === undefined))
