/** What can happen to a database. */
export type DatabaseEvent = 'created' | 'updated' | 'deleted'

const EVENTS: readonly unknown[] = ['created', 'updated', 'deleted'] satisfies DatabaseEvent[]

export const isDatabaseEvent = (value: unknown): value is DatabaseEvent => EVENTS.includes(value)

/** What a document of `global_changes` stands for. */
export interface EventDocument {
  readonly event: DatabaseEvent
  readonly database: string
  /** What stands before the first slash in its name; `_admin` where there is none. */
  readonly account: string
}

/** Id of the document for an event of a database: there is one for both together. */
export const eventId = (event: DatabaseEvent, database: string): string => `${event}:${database}`

/** Undefined for any other document that may be there. */
export function parseEventId(id: string): EventDocument | undefined {
  const [event, ...rest] = id.split(':')
  const database = rest.join(':')
  if (!isDatabaseEvent(event) || database === '') return undefined
  const slash = database.indexOf('/')
  return { event, database, account: slash > 0 ? database.slice(0, slash) : '_admin' }
}
