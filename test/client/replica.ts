/** A local and a remote database with a faulty proxy between them, for the parts that sync. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Db, Pouch } from '../../client/src/pouch.ts'
import { createLink } from '../../client/src/sync/link.ts'
import { createSemaphore } from '../../client/src/sync/semaphore.ts'
import type { Target } from '../../client/src/sync/remote.ts'
import { couchUrl, freshDb } from '../support/couchdb.ts'
import { startFaultyProxy, type Fault } from '../support/faulty-proxy.ts'
import { PouchDB, type TestDb } from './stage.ts'

/** Ends with the running test. */
export async function startReplica(url = couchUrl()) {
  const [there, proxy] = [await freshDb('replica', url), await startFaultyProxy(url)]
  const folder = await mkdtemp(join(tmpdir(), 'replica-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const Local = PouchDB.defaults({ prefix: `${folder}/` }) as unknown as Pouch
  const here = new Local('here') as TestDb & Db
  onTestFinished(async () => void (await here.close()))
  const { username, password } = new URL(url)
  const target: Target = { url: `${new URL(proxy.url).origin}/${there.name}`, user: username, password }

  /** Sends a request without PouchDB, past the proxy. */
  const ask = (path: string, init: RequestInit = {}) => {
    const headers = { authorization: `Basic ${btoa(`${username}:${password}`)}`, ...init.headers }
    return fetch(`${new URL(url).origin}/${there.name}/${path}`, { ...init, headers })
  }
  return { there, here, proxy, target, ask, PouchDB: Local }
}

/** Syncs both databases until the end of the test, live or in rounds. */
export function startLink({ PouchDB, here, target }: Replica, isLive: boolean, roundMs: number) {
  const link = createLink({
    ...{ PouchDB, local: here, target, semaphore: createSemaphore(1), roundMs },
    ...{ onChange() {}, onNews() {}, onRefused() {} },
  })
  link.follow(isLive)
  const stopping = new AbortController()
  const running = link.run(stopping.signal)
  onTestFinished(async () => {
    stopping.abort()
    await running
  })
  return link
}

export type Replica = Awaited<ReturnType<typeof startReplica>>

/** The error page of a proxy whose server is unavailable. */
export const page =
  (status: number): Fault =>
  async (exchange) => {
    const body = (async function* () {
      yield Buffer.from(`<html><h1>${status} of a proxy</h1></html>`)
    })()
    await exchange.send({ status, headers: { 'content-type': 'text/html' }, body })
    exchange.end()
  }
