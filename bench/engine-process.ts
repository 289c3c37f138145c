/**
 * One engine in a separate process, with an empty handler. It reports to its parent when all documents are saved.
 * `engine.ts` forks it with the job as its argument. It loads the built engine: a TypeScript loader wraps every
 * function for its name, which slows code with many functions.
 */
import pino from 'pino'
import type * as clocks from '../sidecar/core/clock.ts'
import type * as heaps from '../sidecar/core/heap.ts'
import type * as clients from '../sidecar/couch/client.ts'
import type * as controls from '../sidecar/docstate/control.ts'
import type * as engines from '../sidecar/docstate/engine.ts'
import type * as channels from '../sidecar/events/channels.ts'
import type * as histories from '../sidecar/history/history-writer.ts'
import type * as registries from '../sidecar/workers/registry.ts'
import type { EngineJob } from './engine.ts'

const built = (path: string) => import(new URL(`../dist/sidecar/${path}`, import.meta.url).href) as Promise<unknown>
const { systemClock } = (await built('core/clock.js')) as typeof clocks
const { keepHeapSmall } = (await built('core/heap.js')) as typeof heaps
const { createCouch } = (await built('couch/client.js')) as typeof clients
const { createControl } = (await built('docstate/control.js')) as typeof controls
const { createEngine } = (await built('docstate/engine.js')) as typeof engines

const { createEvents } = (await built('events/channels.js')) as typeof channels
const { HistoryWriter } = (await built('history/history-writer.js')) as typeof histories
const { createRegistry } = (await built('workers/registry.js')) as typeof registries

keepHeapSmall()
const { url, name, mode, count, machines, hasOptions, history } = JSON.parse(process.argv[2]!) as EngineJob
const couch = createCouch({ url })
const control = createControl(machines)
let ran = 0
const options = { key: ({ _id }: { _id: string }) => _id.slice(-3), limit: { count: 1_000_000, per: '1s' } } as const
control[mode](
  'order',
  'paid',
  async (doc) => {
    ran += 1
    return { ...doc, state: 'invoiced' }
  },
  hasOptions ? options : {},
)
const log = pino({ level: 'warn' })
const events = createEvents({ log })
const database = couch.db(name)
const engine = createEngine({
  database,
  workers: createRegistry({ database, events, clock: systemClock, random: Math.random, log }),
  events,
  table: control,
  mailer: { forEntry: ({ done }) => ({ done, send: () => Promise.reject(new Error('no mail in a bench')) }) },
  worker: 'bench',
  clock: systemClock,
  random: Math.random,
  log,
})
const stopping = new AbortController()
const [clock, random] = [systemClock, Math.random]
const writer =
  history === undefined ? undefined : new HistoryWriter({ couch, name: history, worker: 'bench', clock, random, log })
if (writer) events.subscribe('entry:ended', ({ event }) => writer.add(event))
const recorded = new AbortController()
const recording = writer?.run(recorded.signal)
const [began, cpu] = [performance.now(), process.cpuUsage()]
const running = engine.run(stopping.signal)
while (ran < count || engine.health().inFlight > 0) await new Promise((resolve) => setTimeout(resolve, 5))
recorded.abort(new Error('all are done'))
await recording // pending results are written first
const seconds = (performance.now() - began) / 1000
const { user, system } = process.cpuUsage(cpu)
stopping.abort(new Error('done'))
await running
await couch.close()
process.send!({ seconds, cpuSeconds: (user + system) / 1e6, ran, peakBytes: process.resourceUsage().maxRSS * 1024 })
process.disconnect()
