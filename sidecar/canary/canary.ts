/**
 * A document that goes the whole way on demand: it is written, found by a worker, claimed, handled and saved, as any other
 * of an unsafe handler. That it arrives says more than that all parts are there.
 */
import { randomUUID } from 'node:crypto'
import type { ControlMachines } from '../../ddocs/machines.ts'
import { isoTime, type Clock } from '../core/clock.ts'
import type { Database } from '../couch/database.ts'
import { isCouchError } from '../couch/couch-errors.ts'
import type { Control } from '../docstate/control.ts'
import { forget } from '../docstate/handler-options.ts'

/** @param worker of this process */
export function registerCanary(control: Control<ControlMachines>, worker: string): void {
  control.unsafe('canary', 'sent', (doc) => Promise.resolve({ ...doc, state: 'arrived', worker }))
  control.safe('canary', 'over', forget)
}

export type CanaryResult =
  /** From its writing until its result was seen here, milliseconds; who handled it. */
  | { readonly kind: 'arrived'; readonly ms: number; readonly worker: string }
  /** Not within the time; in sentences, what it waits for. */
  | { readonly kind: 'lost'; readonly reasons: readonly string[] }

export interface CanaryOptions {
  readonly control: Database
  /** How long it may take, milliseconds. */
  readonly withinMs: number
  /** What happens to a document of the control database, and why. */
  readonly explain: (id: string) => Promise<readonly string[]>
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Between two looks: short at first, since that is what is measured. */
const [LEAST_MS, MOST_MS] = [20, 500]

/** Sends one, and waits for it. It is deleted then; one that was left behind is after an hour. Throws `CouchError`. */
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
    if (!isCouchError(thrown, 'conflict')) throw thrown // a worker has it, at last: its own end deletes it
  }
}
