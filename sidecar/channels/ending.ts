import type { Doc } from '../couch/documents.ts'
import type { ChannelRecord, Close } from './channel-documents.ts'
import { normaliseName } from './channel-names.ts'

/** Of a channel, or its record: it is to end, or has ended. */
export const isEnding = ({ state }: Doc): boolean => state === 'closing' || state === 'closed'

/** Of two that are closing: what one of them would keep is kept. */
export const closeOf = (one: Doc, other: Doc): Close =>
  one.close === 'delete' && other.close === 'delete' ? 'delete' : 'archive'

/**
 * By the document of a channel that has ended: it does not say so yet. What its owner has asked for under another name
 * since is another channel.
 */
export const isToNotify = ({ state, name, database }: Doc, record: ChannelRecord): boolean =>
  database === record.database &&
  (state === 'ready' || state === 'closing' || (state === 'accepted' && normaliseName(String(name)) === record.name))

/** A device that has not seen the database yet means the first; with a later one it could be a document from before. */
export const isOfFirst = (life: number, { database }: Doc): boolean => database === undefined && life === 1

/** By the channel's document: its owner has ended it while it was being made. */
export const isCalledOff = (request: Doc | undefined, life: number): boolean =>
  request?.type === 'channel' &&
  (request.state === 'closed' || (request.state === 'closing' && isOfFirst(life, request)))
