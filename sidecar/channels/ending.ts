import type { Doc } from '../couch/documents.ts'
import type { ChannelRecord, Close } from './channel-documents.ts'
import { normaliseName } from './channel-names.ts'

/** Whether a channel or its record is to end, or has ended. */
export const isEnding = ({ state }: Doc): boolean => state === 'closing' || state === 'closed'

/** Merges two closing documents: if either would archive, the database is archived. */
export const closeOf = (one: Doc, other: Doc): Close =>
  one.close === 'delete' && other.close === 'delete' ? 'delete' : 'archive'

/**
 * Whether the document of an ended channel does not show the end yet. A later request of the owner under another name
 * is another channel.
 */
export const isToNotify = ({ state, name, database }: Doc, record: ChannelRecord): boolean =>
  database === record.database &&
  (state === 'ready' || state === 'closing' || (state === 'accepted' && normaliseName(String(name)) === record.name))

/** A document without `database` means the first life. In a later life the document may be of an earlier one. */
export const isOfFirst = (life: number, { database }: Doc): boolean => database === undefined && life === 1

/** Whether the owner has ended the channel while it was being made, by the channel's document. */
export const isCalledOff = (request: Doc | undefined, life: number): boolean =>
  request?.type === 'channel' &&
  (request.state === 'closed' || (request.state === 'closing' && isOfFirst(life, request)))
