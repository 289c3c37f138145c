/**
 * The sidecar's own events. A channel's name is the subject and what happened to it. A part that adds a channel
 * describes it in `catalogue.ts`, the source of docs/events.md.
 */
import type { LiveValue } from '../../ddocs/lib/live-settings.ts'

export interface EventMap {
  'database:created': OfAccount
  'database:updated': OfAccount
  'database:deleted': OfAccount
  'feed:connected': InDatabase
  'feed:broken': InDatabase & Why & { readonly retry_in_ms: number }
  'feed:restarted': InDatabase & { readonly why: string }
  'claim:won': OfDocument
  'claim:lost': OfDocument
  'claim:inherited': OfDocument & { readonly worker: string }
  'handler:started': OfDocument & { readonly key: string }
  'handler:ended': OfDocument & { readonly outcome: string; readonly ms: number }
  'handler:withheld': OfDocument & {
    readonly outcome: string
    readonly next: string | null
    readonly saves: number
    readonly puts: number
    readonly mails: number
    readonly attachments: number
  }
  'document:saved': OfDocument & { readonly next: string; readonly rev: string }
  'document:parked': OfDocument & { readonly reason: string }
  'document:failed': OfDocument & Why & { readonly attempts: number; readonly retry_at: string | null }
  'entry:ended': OfDocument & {
    readonly next: string
    readonly rev: string
    readonly key: string
    readonly mode: 'safe' | 'unsafe' | 'time'
    readonly ms: number
    readonly attempts: number
    readonly version: string | null
    readonly code: string | null
    readonly reason: string | null
  }
  'conflict:resolved': OfDocument & { readonly branches: number }
  'index:built': OfIndex & { readonly lag_ms: number }
  'index:failed': OfIndex & Why & { readonly retry_in_ms: number }
  'mail:sent': { readonly message_id: string; readonly to: string }
  'mail:failed': { readonly message_id: string; readonly to: string } & Why
  'settings:changed': { readonly part: string; readonly settings: Readonly<Record<string, LiveValue>> }
  'worker:joined': OfWorker
  'worker:left': OfWorker
}

export interface InDatabase {
  readonly database: string
}

interface OfAccount extends InDatabase {
  readonly account: string
}

/** `state` is the document's previous state. */
export interface OfDocument extends InDatabase {
  readonly id: string
  readonly type: string
  readonly state: string
}

/** `index` is null for the common index of all views. */
interface OfIndex extends InDatabase {
  readonly ddoc: string
  readonly index: string | null
}

interface OfWorker {
  readonly role: string
  readonly worker: string
}

interface Why {
  readonly code: string
  readonly reason: string
}
