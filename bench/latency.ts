import pino from 'pino'
import { systemClock } from '../sidecar/core/clock.ts'
import type { Couch } from '../sidecar/couch/client.ts'
import { createControl } from '../sidecar/docstate/control.ts'
import { createEngine } from '../sidecar/docstate/engine.ts'
import { createEvents } from '../sidecar/events/channels.ts'
import { createRegistry } from '../sidecar/workers/registry.ts'
import { splitLines } from '../sidecar/feed/source.ts'
import { dropDatabase, fillDatabase, orderMachines } from './database.ts'
import { quantile } from './figures.ts'

export interface Latency {
  /** The time from sending the write to reading the row, or to the start of the handler. Milliseconds. */
  readonly feed: { readonly median: number; readonly p99: number }
  readonly handler: { readonly median: number; readonly p99: number }
}

/**
 * Writes a document every few milliseconds. Measures the time until a plain continuous feed shows it, and until its
 * handler starts.
 */
export async function measureLatency(couch: Couch, writes: number, pauseMs: number): Promise<Latency> {
  const machines = orderMachines('safe')
  const database = await fillDatabase(couch, 0, machines)
  const sent = new Map<string, number>()
  const feed: number[] = []
  const handler: number[] = []
  const since = (id: string) => performance.now() - sent.get(id)!

  const control = createControl(machines)
  control.safe('order', 'paid', async (doc) => {
    handler.push(since(doc._id))
    return { ...doc, state: 'invoiced' }
  })
  const log = pino({ level: 'warn' })
  const events = createEvents({ log })
  const workers = createRegistry({ database, events, clock: systemClock, random: Math.random, log })
  const engine = createEngine({
    ...{ database, workers, events, log, table: control, worker: 'bench', clock: systemClock, random: Math.random },
    mailer: { forEntry: ({ done }) => ({ done, send: () => Promise.reject(new Error('no mail in a bench')) }) },
  })
  const stopping = new AbortController()
  const running = engine.run(stopping.signal)
  const bare = readBareFeed()
  while (!engine.health().following) await new Promise((resolve) => setTimeout(resolve, 20))

  for (let i = 0; i < writes; i++) {
    const _id = `order-${i}`
    sent.set(_id, performance.now())
    await database.put({ _id, type: 'order', state: 'paid', owner: `owner-${i}@example.com` })
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
  while (handler.length < writes || feed.length < writes) await new Promise((resolve) => setTimeout(resolve, 20))
  stopping.abort(new Error('done'))
  await running
  await bare
  await dropDatabase(couch, database)
  return { feed: figures(feed), handler: figures(handler) }

  async function readBareFeed(): Promise<void> {
    const seen = new Set<string>()
    const query = { feed: 'continuous', include_docs: true, since: 'now', heartbeat: 10_000 }
    try {
      for await (const lines of splitLines(await database.changes(query, stopping.signal))) {
        for (const line of lines) {
          const id = line === '' ? undefined : (JSON.parse(line) as { id?: string }).id
          if (id === undefined || seen.has(id) || !sent.has(id)) continue
          seen.add(id)
          feed.push(since(id))
        }
      }
    } catch (thrown) {
      if (!stopping.signal.aborted) throw thrown
    }
  }
}

const figures = (times: readonly number[]) => ({ median: quantile(times, 0.5), p99: quantile(times, 0.99) })
