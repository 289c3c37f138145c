import type { CallOptions, Database } from '../../couch/database.ts'
import type { Doc, StoredDoc } from '../../couch/documents.ts'
import { OWN_PREFIX } from './copy.ts'

export type StagedStep = 'began' | 'staging' | 'warmed' | 'swapping' | 'cleaning'

/** Whose run it is. */
export interface Holder {
  /** Of this one run. */
  readonly run: string
  /** A name for people. */
  readonly name: string
  readonly since: string
}

/**
 * What a deploy does in one database, for whoever goes on with it or takes it back. There while one is not complete.
 * Times are ISO 8601, by the clock of who writes.
 */
export interface DeployRecord {
  /** Nobody, where a run has ended by itself. */
  readonly holder?: Holder
  /** The design documents that it is about. */
  readonly ddocs: readonly string[]
  readonly log: readonly { readonly step: StagedStep; readonly ddoc?: string; readonly at: string }[]
  /** As they were before the swap, from which on they are here; null for what was not there. */
  readonly previous: Readonly<Record<string, Doc | null>>
}

export interface StoredRecord extends DeployRecord {
  readonly rev: string
}

export const RECORD_ID = `${OWN_PREFIX}deploy`
/** The holder's signs of life. */
export const BEAT_ID = '_local/sidecar:deploy'

export async function readRecord(database: Database, options?: CallOptions): Promise<StoredRecord | undefined> {
  const doc = await database.find(RECORD_ID, { attachments: true }, options)
  return doc && recordFrom(doc)
}

const PREVIOUS = 'previous.json'

/** What was there before is attached: a design document may have attachments that are too large for a document. */
export function recordDoc({ previous, ...record }: DeployRecord, rev: string | undefined): Doc {
  const data = Buffer.from(JSON.stringify(previous)).toString('base64')
  const _attachments = { [PREVIOUS]: { content_type: 'application/json', data } }
  return { _id: RECORD_ID, ...(rev !== undefined && { _rev: rev }), autoupdate: false, ...record, _attachments }
}

/** Whoever may write design documents may have written it: what cannot be is left out. */
function recordFrom({ _rev, holder, ddocs, log, _attachments }: StoredDoc): StoredRecord {
  const attached = Object(_attachments) as Partial<Record<string, { readonly data: string }>>
  return {
    rev: _rev,
    ...(isObject(holder) && { holder: holder as unknown as Holder }),
    ddocs: Array.isArray(ddocs) ? (ddocs as string[]) : [],
    log: Array.isArray(log) ? (log as DeployRecord['log'] & unknown[]) : [],
    previous: previousFrom(Buffer.from(String(attached[PREVIOUS]?.data), 'base64').toString()),
  }
}

function previousFrom(json: string): Record<string, Doc | null> {
  try {
    const entries = Object.entries(Object(JSON.parse(json)) as Record<string, Doc | null>)
    return Object.fromEntries(
      entries.filter(([id, doc]) => id.startsWith('_design/') && (doc === null || (Object(doc) as Doc)._id === id)),
    )
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return {}
    throw thrown
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
