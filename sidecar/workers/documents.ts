import type { Doc, Json, StoredDoc } from '../couch/documents.ts'

/** What a worker tells of itself. */
export type WorkerOptions = Readonly<Record<string, Json>>

/** One worker of a role, as it registered. */
export interface Member {
  readonly id: string
  readonly options: WorkerOptions
  /** Without a sign of life for so long it is removed. Milliseconds. */
  readonly timeoutMs: number
  /** ISO 8601, by the worker's own clock: for people. */
  readonly registeredAt: string
}

export const TYPE = 'worker'
export const DEFAULT_TIMEOUT_MS = 15_000
const MIN_TIMEOUT_MS = 500

const part = (text: string) => text.replace(/[%:]/g, encodeURIComponent)

export const rolePrefix = (role: string): string => `${TYPE}:${part(role)}:`
export const memberId = (role: string, id: string): string => `${rolePrefix(role)}${part(id)}`
/** Of the sign of life. */
export const beatId = (memberDocId: string): string => `_local/${memberDocId}`

export function memberDoc(role: string, { id, options, timeoutMs, registeredAt }: Member): Doc {
  const fields = { type: TYPE, role, worker: id, options, timeout_ms: timeoutMs, registered_at: registeredAt }
  return { _id: memberId(role, id), ...fields }
}

/** The member that a document tells of. Other programs write them too: what is not there has its default. */
export function memberFrom(doc: StoredDoc): Member {
  const { worker, options, timeout_ms: timeout, registered_at: at } = doc
  return {
    id: typeof worker === 'string' ? worker : doc._id.slice(doc._id.lastIndexOf(':') + 1),
    options: typeof options === 'object' && options !== null ? (options as WorkerOptions) : {},
    timeoutMs: typeof timeout === 'number' && timeout > 0 ? Math.max(MIN_TIMEOUT_MS, timeout) : DEFAULT_TIMEOUT_MS,
    registeredAt: typeof at === 'string' ? at : '',
  }
}

export const sameOptions = (a: Member, b: Member): boolean =>
  a.timeoutMs === b.timeoutMs && JSON.stringify(a.options) === JSON.stringify(b.options)
