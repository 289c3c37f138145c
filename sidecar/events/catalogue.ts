import type { EventMap } from './map.ts'

/** Subjects of events, and the fields that identify them. */
export const ABOUT = {
  database: { database: 'name of the database' },
  document: {
    database: 'name of the database',
    id: 'id of the document',
    type: 'type of the document',
    state: 'state of the document before the event',
  },
  index: {
    database: 'name of the database',
    ddoc: 'id of the design document',
    index: 'name of the index; null for the common index of all views',
  },
  mail: { message_id: 'Message-ID of the mail', to: 'address of the recipient' },
  part: { part: 'part of the sidecar' },
  worker: { role: 'role of the worker', worker: 'id of the worker' },
} as const

type Description<E, A extends keyof typeof ABOUT> = {
  readonly about: A
  /** Condition of the event. */
  readonly when: string
  /** Meaning of the other fields. */
  readonly fields: { readonly [F in Exclude<keyof E, keyof (typeof ABOUT)[A]>]: string }
}

export type EventDescription<E> = { [A in keyof typeof ABOUT]: Description<E, A> }[keyof typeof ABOUT]

const OF_ACCOUNT = { account: 'part of the database name before the first slash; `_admin` without a slash' }
const WHY = { code: 'code of the failure, for programs', reason: 'explanation, for people' }

/** All events. docs/events.md is made from this table. */
export const EVENTS: { readonly [K in keyof EventMap]: EventDescription<EventMap[K]> } = {
  'database:created': {
    about: 'database',
    when: 'a database was created',
    fields: OF_ACCOUNT,
  },
  'database:updated': {
    about: 'database',
    when: 'a database has changed; several changes in a short time cause one event',
    fields: OF_ACCOUNT,
  },
  'database:deleted': {
    about: 'database',
    when: 'a database was deleted',
    fields: OF_ACCOUNT,
  },
  'feed:connected': {
    about: 'database',
    when: 'the feed of a database is connected',
    fields: {},
  },
  'feed:broken': {
    about: 'database',
    when: 'the feed of a database could not be read; the sidecar retries',
    fields: { ...WHY, retry_in_ms: 'milliseconds until the next attempt' },
  },
  'feed:restarted': {
    about: 'database',
    when: 'the feed of a database is read again from its start; documents that are recorded as handled are not handled again',
    fields: { why: '`database-recreated`, `database-restored` (from an older copy) or `malformed-checkpoint`' },
  },
  'claim:won': {
    about: 'document',
    when: 'this worker has claimed a document for an unsafe handler',
    fields: {},
  },
  'claim:lost': {
    about: 'document',
    when: 'this worker tried to claim a document, but another worker had claimed it',
    fields: {},
  },
  'claim:inherited': {
    about: 'document',
    when: 'this worker has taken over a document from a worker that did not renew its claim',
    fields: { worker: 'id of the other worker' },
  },
  'handler:started': {
    about: 'document',
    when: 'a handler starts',
    fields: { key: '`ctx.key`: the same for all attempts of one entry into a state' },
  },
  'handler:ended': {
    about: 'document',
    when: 'a handler has ended; its outcome is not saved yet',
    fields: {
      outcome: '`next`, `nothing`, `failed`, `rejected`, `claim-lost` or `stopped`',
      ms: 'duration of the run in milliseconds',
    },
  },
  'handler:withheld': {
    about: 'document',
    when: 'a shadow handler has run; its effects are withheld',
    fields: {
      outcome: '`next`, `nothing`, `failed`, `rejected`',
      next: 'state that the document would get; null if the handler returned none',
      saves: 'number of calls of `ctx.save`',
      puts: 'number of documents that `ctx.put` would have written',
      mails: 'number of mails that would have been sent',
      attachments: 'number of attachments that `ctx.attach` would have written',
    },
  },
  'document:saved': {
    about: 'document',
    when: 'the outcome of a handler is stored in CouchDB',
    fields: { next: 'new state of the document', rev: 'new revision of the document' },
  },
  'document:parked': {
    about: 'document',
    when: 'a worker was lost while it ran an unsafe handler: whether the handler took effect is unknown, and an operator must decide',
    fields: { reason: WHY.reason },
  },
  'document:failed': {
    about: 'document',
    when: 'a handler has failed, and the failure is stored in CouchDB',
    fields: {
      ...WHY,
      attempts: 'number of failed attempts',
      retry_at: 'time of the next attempt; null if the document is in `error`',
    },
  },
  'entry:ended': {
    about: 'document',
    when: 'a document has left its state, its handler has finished without a new state, or it has failed for good',
    fields: {
      next: 'new state of the document',
      rev: 'new revision of the document',
      key: '`ctx.key`: the same for all attempts of one entry into a state',
      mode: 'mode of the handler, `safe` or `unsafe`; `time` if a timeout ended the state',
      ms: 'duration of the last run in milliseconds',
      attempts: 'number of failed attempts',
      version: 'version of the handler; null if it has none',
      code: 'code of the final failure; null without one',
      reason: 'explanation of the final failure; null without one',
    },
  },
  'conflict:resolved': {
    about: 'document',
    when: 'conflicting revisions of a document were merged',
    fields: { branches: 'number of conflicting revisions' },
  },
  'index:built': {
    about: 'index',
    when: 'an index has all changes that its database had when the build began',
    fields: { lag_ms: 'milliseconds since the first missing change became known' },
  },
  'index:failed': {
    about: 'index',
    when: 'an index could not be built; the sidecar retries',
    fields: { ...WHY, retry_in_ms: 'milliseconds until the next attempt' },
  },
  'mail:sent': {
    about: 'mail',
    when: 'the mail server has accepted a mail',
    fields: {},
  },
  'mail:failed': {
    about: 'mail',
    when: 'an attempt to send a mail has failed',
    fields: WHY,
  },
  'settings:changed': {
    about: 'part',
    when: 'a [live setting](live-settings.md) of a part has changed',
    fields: { settings: 'all current settings of the part' },
  },
  'worker:joined': {
    about: 'worker',
    when: 'a worker has joined a role',
    fields: {},
  },
  'worker:left': {
    about: 'worker',
    when: 'a worker has left a role, or was removed as dead',
    fields: {},
  },
}
