import type { CallOptions, Database } from '../../couch/database.ts'
import type { Doc, StoredDoc } from '../../couch/documents.ts'
import { digestOf } from '../compare.ts'
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
 * What a deploy does in one database, for the run that goes on with it or takes it back. There while one is not complete.
 * Times are ISO 8601, by the clock of who writes.
 */
export interface DeployRecord {
  /** Undefined if a run has ended by itself. */
  readonly holder?: Holder
  /** The design documents that it is about. */
  readonly ddocs: readonly string[]
  readonly log: readonly { readonly step: StagedStep; readonly ddoc?: string; readonly at: string }[]
  /** As they were before the swap, from which on they are here; null for what was not there. */
  readonly previous: Readonly<Record<string, Doc | null>>
  /** Of each of these, digests of what was found and what was to be written: what has another digest was written by others. */
  readonly known: Readonly<Record<string, readonly string[]>>
}

/** Whether another deploy has changed a design document since. */
export const isForeign = ({ known }: DeployRecord, there: Doc): boolean =>
  known[there._id]?.includes(digestOf(there)) === false

export interface StoredRecord extends DeployRecord {
  readonly rev: string
}

export const RECORD_ID = `${OWN_PREFIX}deploy`
/** The holder's heartbeats. */
export const BEAT_ID = '_local/sidecar:deploy'

export async function readRecord(database: Database, options?: CallOptions): Promise<StoredRecord | undefined> {
  const doc = await database.find(RECORD_ID, { attachments: true }, options)
  return doc && recordFrom(doc)
}

/** What is under way in a database, or broken off: without what was there before, which may be large. Throws `CouchError`. */
export async function readDeploy(
  database: Database,
  options?: CallOptions,
): Promise<Pick<DeployRecord, 'holder' | 'ddocs' | 'log'> | undefined> {
  const doc = await database.find(RECORD_ID, {}, options)
  return doc && recordFrom(doc)
}

const PREVIOUS = 'previous.json'

/** What was there before is attached: a design document may have attachments that are too large for a document. */
export function recordDoc({ previous, ...record }: DeployRecord, rev: string | undefined): Doc {
  const data = Buffer.from(JSON.stringify(previous)).toString('base64')
  const _attachments = { [PREVIOUS]: { content_type: 'application/json', data } }
  return { _id: RECORD_ID, ...(rev !== undefined && { _rev: rev }), autoupdate: false, ...record, _attachments }
}

/** What others than these design documents still need of it: nothing, unless they had begun to change. */
export function restOf(
  { holder: _holder, ...record }: DeployRecord,
  done: readonly string[],
): DeployRecord | undefined {
  const previous = Object.fromEntries(Object.entries(record.previous).filter(([id]) => !done.includes(id)))
  const ddocs = Object.keys(previous)
  return ddocs.length > 0 ? { ...record, ddocs, previous } : undefined
}

/** With what is in conflict with it, which would be seen in its place: replication brings design documents, too. */
export async function removeRecord(database: Database, rev: string, signal: AbortSignal): Promise<void> {
  const leaves = await database.leaves(RECORD_ID, { signal })
  await database.remove(RECORD_ID, rev, { signal }) // the first: so it is still ours
  for (const { _rev, _deleted } of leaves) {
    if (_rev !== rev && !_deleted) await database.remove(RECORD_ID, _rev, { signal })
  }
}

/** Any admin may have written it: impossible values are left out. */
function recordFrom({ _rev, holder, ddocs, log, known, _attachments }: StoredDoc): StoredRecord {
  const attached = Object(_attachments) as Partial<Record<string, { readonly data: string }>>
  return {
    rev: _rev,
    ...(isObject(holder) && { holder: holder as unknown as Holder }),
    ddocs: Array.isArray(ddocs) ? (ddocs as string[]) : [],
    log: Array.isArray(log) ? (log as DeployRecord['log'] & unknown[]) : [],
    known: Object.fromEntries(
      Object.entries(Object(known) as Record<string, string[]>).filter(([, digests]) => Array.isArray(digests)),
    ),
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
