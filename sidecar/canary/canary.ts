/**
 * A test document that goes the whole way on demand. It is written, found by a worker, claimed, handled and saved, like
 * every document of an unsafe handler. Its arrival proves more than running parts do.
 */
import { randomUUID } from 'node:crypto'
import type { ControlMachines } from '../../ddocs/machines.ts'
import { isoTime, type Clock } from '../core/clock.ts'
import type { Database } from '../couch/database.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import type { Control } from '../docstate/control.ts'
import { forget } from '../docstate/handler-options.ts'

/** @param worker name of this process's worker */
export function registerCanary(control: Control<ControlMachines>, worker: string): void {
  control.unsafe('canary', 'sent', (doc) => Promise.resolve({ ...doc, state: 'arrived', worker }))
  control.safe('canary', 'over', forget)
}

export type CanaryResult =
  /** `ms`: from the write until the result was read, milliseconds. `worker`: the worker that handled it. */
  | { readonly kind: 'arrived'; readonly ms: number; readonly worker: string }
  /** Not handled in time. `reasons`: sentences that say what the document waits for. */
  | { readonly kind: 'lost'; readonly reasons: readonly string[] }

export interface CanaryOptions {
  readonly control: Database
  /** Maximum time to wait, milliseconds. */
  readonly withinMs: number
  /** Explains what happens to a document of the control database, and why, as sentences. */
  readonly explain: (id: string) => Promise<readonly string[]>
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Limits of the pause between reads, milliseconds. It is short at first, for a precise result. */
const [LEAST_MS, MOST_MS] = [20, 500]

/** Sends a canary, waits for it, and deletes it; a leftover one is deleted after an hour. Throws `CouchError`. */
export async function sendCanary(options: CanaryOptions): Promise<CanaryResult> {
  const { control, withinMs, explain, clock, signal } = options
  const _id = `canary:${randomUUID()}`
  const began = clock.ticks()
  const passed = () => clock.ticks() - began
  await control.put({ _id, type: 'canary', state: 'sent', sent_at: isoTime(clock.now()) }, { signal })
  while (passed() < withinMs) {
    await clock.sleep(Math.min(Math.max(LEAST_MS, passed() / 5), MOST_MS, withinMs - passed()), signal)
    const doc = await control.find(_id, {}, { signal })
    if (doc?.state === 'arrived') {
      const ms = passed()
      await remove(control, _id, doc._rev)
      return { kind: 'arrived', ms, worker: String(doc.worker) }
    }
    if (doc === undefined || doc.state !== 'sent') break
  }
  const reasons = await explain(_id)
  const doc = await control.find(_id, {}, { signal })
  if (doc) await remove(control, _id, doc._rev)
  return { kind: 'lost', reasons }
}

async function remove(control: Database, id: string, rev: string): Promise<void> {
  try {
    await control.remove(id, rev)
  } catch (thrown) {
    if (!isCouchError(thrown, 'conflict')) throw thrown // a worker has taken it after all: its timeout deletes it
  }
}
