import type { Doc, Json, StoredDoc } from '../couch/documents.ts'

/** Options that a worker publishes. */
export type WorkerOptions = Readonly<Record<string, Json>>

/** A registered worker of a role. */
export interface Member {
  readonly id: string
  readonly options: WorkerOptions
  /** A worker without a heartbeat for this long is removed. Milliseconds, at least 500. */
  readonly timeoutMs: number
  /** ISO 8601, by the worker's own clock: for display only. */
  readonly registeredAt: string
}

/** The role of the sidecars that share one control database. */
export const ROLE = 'sidecar'

export const TYPE = 'worker'
const DEFAULT_TIMEOUT_MS = 15_000
const MIN_TIMEOUT_MS = 500

const part = (text: string) => text.replace(/[%:]/g, encodeURIComponent)
const unpart = (text: string) => text.replace(/%(25|3A)/gi, decodeURIComponent)

export const rolePrefix = (role: string): string => `${TYPE}:${part(role)}:`
export const memberId = (role: string, id: string): string => `${rolePrefix(role)}${part(id)}`
export const roleOf = ({ _id }: StoredDoc): string => unpart(_id.split(':')[1] ?? '')
/** Id of the heartbeat's document. */
export const beatId = (memberDocId: string): string => `_local/${memberDocId}`

/** @param process id of the writing process: of two processes with the same worker id, only one owns the document */
export function memberDoc(role: string, { id, options, timeoutMs, registeredAt }: Member, process: string): Doc {
  const fields = { type: TYPE, role, worker: id, options, timeout_ms: timeoutMs, registered_at: registeredAt }
  return { _id: memberId(role, id), ...fields, process }
}

/** Whether a document is a worker's; its id alone is not enough. Other programs may omit fields that repeat the id. */
export function isMember({ _id, type = TYPE, role }: StoredDoc): boolean {
  if (type !== TYPE || !/^worker:[^:]+:./.test(_id)) return false
  return role === undefined || (typeof role === 'string' && _id.startsWith(rolePrefix(role)))
}

export const timeoutFrom = (timeout: unknown): number =>
  Number.isFinite(timeout) && Number(timeout) > 0 ? Math.max(MIN_TIMEOUT_MS, Number(timeout)) : DEFAULT_TIMEOUT_MS

/** Reads a member from its document. Other programs write such documents, too: missing fields have defaults. */
export function memberFrom(doc: StoredDoc): Member {
  const { worker, options, timeout_ms: timeout, registered_at: at } = doc
  return {
    id: typeof worker === 'string' ? worker : unpart(doc._id.slice(doc._id.lastIndexOf(':') + 1)),
    options: typeof options === 'object' && options !== null ? (options as WorkerOptions) : {},
    timeoutMs: timeoutFrom(timeout),
    registeredAt: typeof at === 'string' ? at : '',
  }
}

export const sameOptions = (a: Member, b: Member): boolean =>
  a.timeoutMs === b.timeoutMs && JSON.stringify(a.options) === JSON.stringify(b.options)
