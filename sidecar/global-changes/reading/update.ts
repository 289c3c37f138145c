import type { Seq } from '../../couch/documents.ts'
import { revsFrom } from '../../feed/source.ts'
import { parseEventId, type EventDocument } from '../event-documents.ts'

/** The reader: an admin sees all databases, a user those of one account. */
export type Viewer = { readonly kind: 'admin' } | { readonly kind: 'account'; readonly account: string }

/** One change of `global_changes`: something has happened to a database. */
export class Update {
  readonly id: string
  readonly rev: string
  readonly seq: Seq
  /** Undefined if the document represents no event, or is deleted: then the update is not shown. */
  readonly event: EventDocument | undefined
  readonly #texts: { [K in Viewer['kind']]?: string } = {}

  constructor({ id, rev, seq, deleted }: { id: string; rev: string; seq: Seq; deleted: boolean }) {
    this.id = id
    this.rev = rev
    this.seq = seq
    this.event = deleted ? undefined : parseEventId(id)
  }

  isFor(viewer: Viewer): boolean {
    return this.event !== undefined && (viewer.kind === 'admin' || this.event.account === viewer.account)
  }

  /** The row as sent to viewers of this kind; rendered once for all of them. */
  textFor({ kind }: Viewer): string {
    return (this.#texts[kind] ??= this.#render(kind))
  }

  #render(kind: Viewer['kind']): string {
    const { event: type, database: db_name, account } = this.event!
    return JSON.stringify({ db_name, type, seq: this.seq, ...(kind === 'admin' && { account }) })
  }
}

/** Converts a row of `_changes`; undefined if the row is invalid. */
export function updateFrom(row: Readonly<Record<string, unknown>> & { readonly seq: Seq }): Update | undefined {
  const { id, seq, deleted, changes } = row
  const rev = revsFrom(changes)?.[0]
  if (typeof id !== 'string' || rev === undefined) return undefined
  return new Update({ id, rev, seq, deleted: deleted === true })
}
