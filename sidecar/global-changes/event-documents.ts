/** An event of a database. */
export type DatabaseEvent = 'created' | 'updated' | 'deleted'

const EVENTS: readonly unknown[] = ['created', 'updated', 'deleted'] satisfies DatabaseEvent[]

export const isDatabaseEvent = (value: unknown): value is DatabaseEvent => EVENTS.includes(value)

/** The event that a document of `global_changes` represents. */
export interface EventDocument {
  readonly event: DatabaseEvent
  readonly database: string
  /** Part of the name before the first slash; `_admin` without a slash. */
  readonly account: string
}

/** Id of an event document: one document per pair of event and database. */
export const eventId = (event: DatabaseEvent, database: string): string => `${event}:${database}`

/** Returns undefined if the id is not that of an event document. */
export function parseEventId(id: string): EventDocument | undefined {
  const [event, ...rest] = id.split(':')
  const database = rest.join(':')
  if (!isDatabaseEvent(event) || database === '') return undefined
  const slash = database.indexOf('/')
  return { event, database, account: slash > 0 ? database.slice(0, slash) : '_admin' }
}
