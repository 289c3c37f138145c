import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { openExchange, type Answer, type Exchange, type SeenRequest } from './proxy-exchange.ts'

/** A fault for a write of the worker: the write is stored but its answer is lost, or `act` runs before the write. */
export type OnWrite = { readonly kind: 'lose-answer' } | { readonly kind: 'before'; readonly act: () => Promise<void> }

/** The connection from a worker to a real CouchDB, on which faults are simulated. */
export interface WorkerConnection {
  /** URL of CouchDB for the worker, with credentials. */
  readonly url: string
  /** Plans a fault for the worker's next write of this document. */
  onWrite(id: string, what: OnWrite): void
  /** Resolves when no request has been open for a moment; feeds do not count. */
  whenIdle(): Promise<void>
  /** Breaks all connections and accepts no others, as if the worker was killed. */
  cut(): Promise<void>
}

const PAUSE_MS = 10
/**
 * Number of pauses without a request after which the worker is idle. Together they are longer than its pause between two
 * dependent requests. They are counted, not measured: the worker runs in this process, and is delayed like the pauses.
 */
const QUIET_PAUSES = 10
/** Maximum number of pauses: a handler may send requests again and again. */
const MOST_PAUSES = 1000

/**
 * @param upstream CouchDB, with credentials
 * @param aheadMs how far the worker's clock is ahead: times in CouchDB's answers are shifted equally
 */
export async function openWorkerConnection(upstream: string, aheadMs: () => number): Promise<WorkerConnection> {
  const target = new URL(new URL(upstream).origin)
  const planned: { readonly id: string; readonly what: OnWrite }[] = []

  let underWay = 0
  let finished = 0

  async function counted(exchange: Exchange): Promise<void> {
    if (exchange.request.query.has('feed')) return meet(exchange)
    underWay += 1
    await meet(exchange).finally(() => {
      underWay -= 1
      finished += 1
    })
  }

  async function pass(exchange: Exchange): Promise<void> {
    await exchange.send(inTime(await exchange.forward()))
    exchange.end()
  }

  async function meet(exchange: Exchange): Promise<void> {
    const { what } = takePlanned(idsWritten(exchange.request)) ?? {}
    if (what?.kind === 'before') await what.act()
    if (what?.kind !== 'lose-answer') return pass(exchange)
    for await (const _ of (await exchange.forward()).body);
    exchange.cut()
  }

  function takePlanned(ids: readonly string[]) {
    const at = planned.findIndex(({ id }) => ids.includes(id))
    return at < 0 ? undefined : planned.splice(at, 1)[0]
  }

  function inTime(answer: Answer): Answer {
    const { date } = answer.headers
    if (date === undefined) return answer
    return { ...answer, headers: { ...answer.headers, date: new Date(Date.parse(date) + aheadMs()).toUTCString() } }
  }

  const server = http.createServer((incoming, response) => {
    openExchange(target, incoming, response, () => Promise.resolve())
      .then(counted)
      .catch(() => response.destroy())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = new URL(upstream)
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: url.href.replace(/\/$/, ''),
    onWrite: (id, what) => void planned.push({ id, what }),
    async whenIdle() {
      for (let quiet = 0, all = 0; quiet < QUIET_PAUSES && all < MOST_PAUSES; all++) {
        const before = finished
        await sleep(PAUSE_MS)
        quiet = underWay === 0 && finished === before ? quiet + 1 : 0
      }
    },
    async cut() {
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

function idsWritten({ method, path, body }: SeenRequest): readonly string[] {
  if (method === 'PUT') return [decodeURIComponent(path.split('/').slice(2).join('/'))]
  if (method !== 'POST' || !path.endsWith('/_bulk_docs')) return []
  const { docs } = JSON.parse(body) as { readonly docs: readonly { readonly _id: string }[] }
  return docs.map(({ _id }) => _id)
}
