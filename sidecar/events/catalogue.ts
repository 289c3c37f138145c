import type { EventMap } from './map.ts'

/** What events are about, and the fields that tell it. */
export const ABOUT = {
  database: { database: 'name of the database' },
  document: {
    database: 'name of the database',
    id: 'of the document',
    type: 'of the document',
    state: 'that it was in before',
  },
  index: {
    database: 'name of the database',
    ddoc: 'id of the design document',
    index: 'its name; null where it is that of all views',
  },
  mail: { message_id: 'as in the mail’s header', to: 'address of the recipient' },
  part: { part: 'of the sidecar' },
  worker: { role: 'of the worker', worker: 'its id' },
} as const

type Description<E, A extends keyof typeof ABOUT> = {
  readonly about: A
  /** When it is told. */
  readonly when: string
  /** What its other fields are. */
  readonly fields: { readonly [F in Exclude<keyof E, keyof (typeof ABOUT)[A]>]: string }
}

export type EventDescription<E> = { [A in keyof typeof ABOUT]: Description<E, A> }[keyof typeof ABOUT]

const OF_ACCOUNT = { account: 'what stands before the first slash in its name; `_admin` where there is none' }
const WHY = { code: 'of what went wrong, for programs', reason: 'the same, for people' }

/** Every event there is. docs/events.md is made of it. */
export const EVENTS: { readonly [K in keyof EventMap]: EventDescription<EventMap[K]> } = {
  'database:created': {
    about: 'database',
    when: 'a database was made',
    fields: OF_ACCOUNT,
  },
  'database:updated': {
    about: 'database',
    when: 'something in a database has changed; changes that come close together are told once',
    fields: OF_ACCOUNT,
  },
  'database:deleted': {
    about: 'database',
    when: 'a database was deleted',
    fields: OF_ACCOUNT,
  },
  'feed:connected': {
    about: 'database',
    when: 'the feed of a database is being read',
    fields: {},
  },
  'feed:broken': {
    about: 'database',
    when: 'the feed of a database could not be read; it is tried again',
    fields: { ...WHY, retry_in_ms: 'milliseconds until then' },
  },
  'feed:restarted': {
    about: 'database',
    when: 'reading the feed again from its start; what the database says was handled is not handled again',
    fields: { why: '`database-recreated`, `database-restored` (from an older copy) or `malformed-checkpoint`' },
  },
  'claim:won': {
    about: 'document',
    when: 'an unsafe document is this worker’s to handle',
    fields: {},
  },
  'claim:lost': {
    about: 'document',
    when: 'this worker reached for a document, and another has it',
    fields: {},
  },
  'claim:inherited': {
    about: 'document',
    when: 'a document is taken over from a worker that did not renew its claim',
    fields: { worker: 'id of that one' },
  },
  'handler:started': {
    about: 'document',
    when: 'a handler begins',
    fields: { key: '`ctx.key`: the same for all tries of one entry into a state' },
  },
  'handler:ended': {
    about: 'document',
    when: 'a handler ended, before its outcome is saved',
    fields: {
      outcome: '`next`, `nothing`, `failed`, `rejected`, `claim-lost` or `stopped`',
      ms: 'milliseconds that it ran',
    },
  },
  'handler:withheld': {
    about: 'document',
    when: 'a shadow handler has run, and its effects are withheld',
    fields: {
      outcome: '`next`, `nothing`, `failed`, `rejected`',
      next: 'the state that the document would be in; null if it returned none',
      saves: 'times that it called `ctx.save`',
      puts: 'documents that it would have written by `ctx.put`',
      mails: 'mails that it would have sent',
      attachments: 'attachments that it would have written by `ctx.attach`',
    },
  },
  'document:saved': {
    about: 'document',
    when: 'the outcome of a handler is in CouchDB',
    fields: { next: 'the state that it is in now', rev: 'the revision' },
  },
  'document:parked': {
    about: 'document',
    when: 'it is unknown whether the effect happened: an operator decides',
    fields: { reason: WHY.reason },
  },
  'document:failed': {
    about: 'document',
    when: 'a handler has failed, and that is written down',
    fields: { ...WHY, attempts: 'tries so far', retry_at: 'when it is tried again; null: never, its state is `error`' },
  },
  'entry:ended': {
    about: 'document',
    when: 'a document has left its state, or its handler is done with it there, or has failed for good',
    fields: {
      next: 'the state that it is in now',
      rev: 'the revision',
      key: '`ctx.key`: the same for all tries of one entry into a state',
      mode: 'of the handler: `safe` or `unsafe`; `time` where the state has ended by its time',
      ms: 'milliseconds that the last run took',
      attempts: 'tries that failed',
      version: 'of the handler; null if it says none',
      code: 'of why it has failed for good; null if it has not',
      reason: 'the same, for people',
    },
  },
  'conflict:resolved': {
    about: 'document',
    when: 'branches that replication brought were made one document',
    fields: { branches: 'how many there were' },
  },
  'index:built': {
    about: 'index',
    when: 'an index has all that its database had when its build began',
    fields: { lag_ms: 'milliseconds since the first change that was missing became known' },
  },
  'index:failed': {
    about: 'index',
    when: 'cannot build an index; trying again',
    fields: { ...WHY, retry_in_ms: 'milliseconds until then' },
  },
  'mail:sent': {
    about: 'mail',
    when: 'the mail server has taken a mail',
    fields: {},
  },
  'mail:failed': {
    about: 'mail',
    when: 'a mail could not be handed over',
    fields: WHY,
  },
  'settings:changed': {
    about: 'part',
    when: 'one of the [live settings](live-settings.md) of a part has changed',
    fields: { settings: 'all of that part, as they hold now' },
  },
  'worker:joined': {
    about: 'worker',
    when: 'a worker of a role is there',
    fields: {},
  },
  'worker:left': {
    about: 'worker',
    when: 'a worker of a role has gone, or was found dead',
    fields: {},
  },
}
