import type { Hono } from 'hono'
import type { Json } from './couch/documents.ts'
import type { Metrics } from './metrics/metric.ts'

/**
 * A part of the sidecar that can be left out. To add one: a folder with a function that creates the feature, and a line
 * in `sidecar.ts`.
 */
export interface Feature {
  /** Works until the signal aborts. Resolves when all work is saved or released. */
  readonly run?: (signal: AbortSignal) => Promise<void>
  /** Endpoints with their full paths. */
  readonly routes?: readonly Hono[]
  readonly metrics?: readonly Metrics[]
  /** Current problems for `GET /_up`: sentences without secrets. */
  readonly problems?: () => readonly string[]
  /** Capabilities that this worker announces to the other workers. */
  readonly capabilities?: Readonly<Record<string, Json>>
}
