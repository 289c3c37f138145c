import type { Hono } from 'hono'
import type { Json } from './couch/documents.ts'
import type { Metrics } from './metrics/metric.ts'

/**
 * A part of the sidecar that can be added or left out. To add one: a folder, in it a function that makes the feature, and
 * a line in `sidecar.ts`.
 */
export interface Feature {
  /** Works until the signal aborts; resolves when everything is saved or given back. */
  readonly run?: (signal: AbortSignal) => Promise<void>
  /** Its endpoints, with their full paths. */
  readonly routes?: readonly Hono[]
  readonly metrics?: readonly Metrics[]
  /** What keeps it from its work, for `GET /_up`: sentences that hold nothing secret. */
  readonly problems?: () => readonly string[]
  /** What this worker tells the other workers it does. */
  readonly capabilities?: Readonly<Record<string, Json>>
}
