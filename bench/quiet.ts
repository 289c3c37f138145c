import { readFile } from 'node:fs/promises'
import type { Couch } from '../sidecar/couch/client.ts'
import { dropDatabase, fillDatabase } from './database.ts'
import { startProduct } from './product.ts'
import { answerOf } from '../test/support/answers.ts'

/** The highest memory of the process while `count` documents waited and its handlers were slow. Bytes. */
export async function measurePeakMemory(couch: Couch, url: string, count: number, seconds: number): Promise<number> {
  const database = await fillDatabase(couch, count, {})
  const { child, stop } = await startProduct(url, database.name, 100)
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  const status = await readFile(`/proc/${child.pid}/status`, 'utf8')
  await stop()
  await dropDatabase(couch, database)
  for (const left of ['control', 'events']) await couch.request({ method: 'DELETE', db: `${database.name}-${left}` })
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)![1]) * 1024
}

export interface Idle {
  /** Documents written, without `_local` ones such as heartbeats. */
  readonly writes: number
  /** PUT and DELETE requests. */
  readonly requests: number
}

/** The writes of an idle sidecar in this time. */
export async function measureIdle(couch: Couch, url: string, seconds: number): Promise<Idle> {
  const database = await fillDatabase(couch, 50, {})
  const { stop } = await startProduct(url, database.name, 0)
  await new Promise((resolve) => setTimeout(resolve, 15_000)) // all handled, checkpoint written
  const before = await countWrites(couch)
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  const after = await countWrites(couch)
  await stop()
  await dropDatabase(couch, database)
  for (const left of ['control', 'events']) await couch.request({ method: 'DELETE', db: `${database.name}-${left}` })
  return { writes: after.writes - before.writes, requests: after.requests - before.requests }
}

async function countWrites(couch: Couch): Promise<Idle> {
  type Counter = { readonly value: number }
  const stats = await answerOf<{ document_writes: Counter; httpd_request_methods: Record<string, Counter> }>(couch, {
    path: '_node/_local/_stats/couchdb',
  })
  const { PUT, DELETE } = stats.httpd_request_methods
  return { writes: stats.document_writes.value, requests: PUT!.value + DELETE!.value }
}
