/**
 * Exports of `couchdb-sidecar` for modules of handlers.
 *
 * @module
 */
export { defineHandlers, type HandlersModule } from './docstate/handlers.ts'
export { webhook, type Webhook } from './webhooks/webhook.ts'
export type { Control, TypedHandler } from './docstate/control.ts'
export type { Attachment, AttachmentBody, Context, HandlerOptions, OtherDatabase } from './docstate/types.ts'
export type {
  DeletionHandler,
  DeletionOptions,
  ScheduledRun,
  ScheduleHandler,
  ScheduleOptions,
  Tombstone,
} from './docstate/runs.ts'
export type { Conflict, Resolver } from './docstate/conflicts/merge.ts'
export type { Mail, Message } from './docstate/mail.ts'
export type {
  Channel,
  Events,
  Message as EventMessage,
  Ref as EventRef,
  Subscriber as EventSubscriber,
} from './events/channels.ts'
export type { EventMap } from './events/map.ts'
export type { Registry, RegisterOptions, Ref, Subscriber } from './workers/registry.ts'
export type { Membership } from './workers/role.ts'
export type { Member, WorkerOptions } from './workers/worker-documents.ts'
export type { Doc, StoredDoc } from './couch/documents.ts'
export { Reject, RetryLater } from './core/errors.ts'
export type { Duration } from './core/duration.ts'
export { CouchError } from './couch/couch-errors.ts'
export { defineMachines, type Machine, type Machines, type State, type Writer } from '../ddocs/machine.ts'
