/**
 * One of several workers that share a database, in a separate process. `sharing.ts` forks it with the job as its
 * argument. It registers, runs its engine when its parent sends "go", and reports its progress.
 */
import pino from 'pino'
import type * as clocks from '../sidecar/core/clock.ts'
import type * as clients from '../sidecar/couch/client.ts'
import type * as controls from '../sidecar/docstate/control.ts'
import type * as engines from '../sidecar/docstate/engine.ts'
import type * as channels from '../sidecar/events/channels.ts'
import type * as registries from '../sidecar/workers/registry.ts'
import type * as sharings from '../sidecar/workers/partitioning.ts'
import type { Machines } from '../ddocs/machine.ts'
import type { WorkerJob } from './sharing.ts'

const built = (path: string) => import(new URL(`../dist/sidecar/${path}`, import.meta.url).href) as Promise<unknown>
const { systemClock: clock } = (await built('core/clock.js')) as typeof clocks
const { createCouch } = (await built('couch/client.js')) as typeof clients
const { createControl } = (await built('docstate/control.js')) as typeof controls
const { createEngine } = (await built('docstate/engine.js')) as typeof engines
const { createEvents } = (await built('events/channels.js')) as typeof channels
const { createRegistry } = (await built('workers/registry.js')) as typeof registries
const { createPartitioning } = (await built('workers/partitioning.js')) as typeof sharings

const { url, name, worker, handlerMs } = JSON.parse(process.argv[2]!) as WorkerJob
const [random, log] = [Math.random, pino({ level: 'warn' })]
const stopping = new AbortController()
let go = () => {}
const mayGo = new Promise<void>((resolve) => (go = resolve))
process.on('message', (said) => (said === 'go' ? go() : stopping.abort(new Error('done'))))

const couch = createCouch({ url })
const database = couch.db(name)
const events = createEvents({ log })
const workers = createRegistry({ database, events, clock, random, log })
workers.register('bench', worker, { timeoutMs: 3000 })
const partitioning = createPartitioning({
  registry: workers,
  role: 'bench',
  self: worker,
  serves: () => true,
  signal: stopping.signal,
})
workers.subscribe('bench', ({ members }) => process.send!({ members: members.length }))

const control = createControl<Machines>({})
let ran = 0
control.unsafe('order', 'paid', async (doc) => {
  if (handlerMs > 0) await new Promise((resolve) => setTimeout(resolve, handlerMs))
  ran += 1
  return { ...doc, state: 'invoiced' }
})
await mayGo
const engine = createEngine({
  ...{ database, table: control, workers, events, worker, clock, random, log, partition: partitioning.of(name) },
  mailer: { forEntry: ({ done }) => ({ done, send: () => Promise.reject(new Error('no mail in a bench')) }) },
})
const running = engine.run(stopping.signal)
const telling = setInterval(() => {
  const { contended: inVain, inFlight } = engine.health()
  process.send!({ ran, inVain, inFlight })
}, 10)
await running
clearInterval(telling)
await workers.close()
await couch.close()
process.disconnect()
