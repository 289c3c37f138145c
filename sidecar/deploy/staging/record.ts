import type { CallOptions, Database } from '../../couch/database.ts'
import type { Doc, StoredDoc } from '../../couch/documents.ts'
import { digestOf } from '../compare.ts'
import { OWN_PREFIX } from './copy.ts'

export type StagedStep = 'began' | 'staging' | 'warmed' | 'swapping' | 'cleaning'

/** The run that holds a database. */
export interface Holder {
  /** Unique id of the run. */
  readonly run: string
  /** Name for operators. */
  readonly name: string
  readonly since: string
}

/**
 * State of a deploy in one database, for the run that resumes or reverts it. It exists while a deploy is incomplete.
 * Times are ISO 8601, by the clock of the writer.
 */
export interface DeployRecord {
  /** Undefined after a run has released the record. */
  readonly holder?: Holder
  /** Ids of the design documents of the deploy. */
  readonly ddocs: readonly string[]
  readonly log: readonly { readonly step: StagedStep; readonly ddoc?: string; readonly at: string }[]
  /** The versions before the swap, stored when the swap begins; null for a document that did not exist. */
  readonly previous: Readonly<Record<string, Doc | null>>
  /** Digests of each document as found and as planned. A version with another digest comes from others. */
  readonly known: Readonly<Record<string, readonly string[]>>
}

/** Whether another deploy has changed a design document since. */
export const isForeign = ({ known }: DeployRecord, current: Doc): boolean =>
  known[current._id]?.includes(digestOf(current)) === false

export interface StoredRecord extends DeployRecord {
  readonly rev: string
}

export const RECORD_ID = `${OWN_PREFIX}deploy`
/** Id of the document with the holder's heartbeats. */
export const BEAT_ID = '_local/sidecar:deploy'

export async function readRecord(database: Database, options?: CallOptions): Promise<StoredRecord | undefined> {
  const doc = await database.find(RECORD_ID, { attachments: true }, options)
  return doc && recordFrom(doc)
}

/** Reads a running or interrupted deploy, without the previous versions, which may be large. Throws `CouchError`. */
export async function readDeploy(
  database: Database,
  options?: CallOptions,
): Promise<Pick<DeployRecord, 'holder' | 'ddocs' | 'log'> | undefined> {
  const doc = await database.find(RECORD_ID, {}, options)
  return doc && recordFrom(doc)
}

const PREVIOUS = 'previous.json'

/** The record as a document. `previous` is attached: attachments in it may be too large for a document. */
export function recordDoc({ previous, ...record }: DeployRecord, rev: string | undefined): Doc {
  const data = Buffer.from(JSON.stringify(previous)).toString('base64')
  const _attachments = { [PREVIOUS]: { content_type: 'application/json', data } }
  return { _id: RECORD_ID, ...(rev !== undefined && { _rev: rev }), autoupdate: false, ...record, _attachments }
}

/** The part of the record for other design documents; undefined if none of them had begun to change. */
export function restOf(
  { holder: _holder, ...record }: DeployRecord,
  done: readonly string[],
): DeployRecord | undefined {
  const previous = Object.fromEntries(Object.entries(record.previous).filter(([id]) => !done.includes(id)))
  const ddocs = Object.keys(previous)
  return ddocs.length > 0 ? { ...record, ddocs, previous } : undefined
}

/** Removes the record and its conflicting leaves, which would replace it: replication copies design documents, too. */
export async function removeRecord(database: Database, rev: string, signal: AbortSignal): Promise<void> {
  const leaves = await database.leaves(RECORD_ID, { signal })
  await database.remove(RECORD_ID, rev, { signal }) // first, so that a conflict shows a new holder
  for (const { _rev, _deleted } of leaves) {
    if (_rev !== rev && !_deleted) await database.remove(RECORD_ID, _rev, { signal })
  }
}

/** Any admin may have written the record: invalid values are left out. */
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
