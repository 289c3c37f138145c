/**
 * One reader of all changes of a database in a separate process. `following.ts` forks it with the job as its argument.
 */
import type { EventEmitter } from 'node:events'
import nano from 'nano'
import type * as clocks from '../sidecar/core/clock.ts'
import type * as clients from '../sidecar/couch/client.ts'
import type * as changes from '../sidecar/feed/change.ts'
import type * as follows from '../sidecar/feed/follow.ts'
import { ask } from './ask.ts'
import type { Follower, FollowingJob, FollowingResult } from './following.ts'

/** Not installed here: `npm install --no-save cloudant-follow` (it needs the deprecated `request`). */
interface CloudantFollow {
  default(options: object, each: (error: Error | null) => void): { stop(): void }
}

const { url, name, follower, count } = JSON.parse(process.argv[2]!) as FollowingJob
const built = (path: string) => import(new URL(`../dist/sidecar/${path}`, import.meta.url).href) as Promise<unknown>

/** Prepares a reader. Returns the function that reads until the given number of rows has arrived. */
const readers: Record<Follower, () => Promise<(() => Promise<void>) | undefined>> = {
  'plain read': async () => async () => {
    const answer = await ask(url, `${name}/_changes?include_docs=true`)
    const { results } = (await answer.json()) as { results: unknown[] }
    if (results.length < count) throw new Error(`${results.length} rows`)
  },

  sidecar: async () => {
    const { systemClock } = (await built('core/clock.js')) as typeof clocks
    const { createCouch } = (await built('couch/client.js')) as typeof clients
    const { changesOf } = (await built('feed/change.js')) as typeof changes
    const { follow } = (await built('feed/follow.js')) as typeof follows
    const couch = createCouch({ url })
    return async () => {
      const enough = new AbortController()
      const source = changesOf(couch.db(name))
      let rows = 0
      for await (const event of follow({ source, clock: systemClock, random: Math.random }, enough.signal)) {
        if (event.kind === 'rows') rows += event.rows.length
        if (rows >= count) break
      }
      enough.abort()
      await couch.close()
    }
  },

  'nano get': async () => () =>
    ended((reader) => reader.get({ since: '0', batchSize: 1000, wait: true, includeDocs: true }), true),

  'nano spool': async () => () => ended((reader) => reader.spool({ since: '0', batchSize: 1000, includeDocs: true })),

  'cloudant-follow': async () => {
    const packageName = 'cloudant-follow'
    const found = (await import(packageName).catch(() => undefined)) as CloudantFollow | undefined
    if (!found) return undefined
    return () =>
      new Promise((resolve, reject) => {
        let rows = 0
        const feed = found.default({ db: `${url}/${name}`, since: 0, include_docs: true }, (error) => {
          if (error) return reject(error)
          if (++rows < count) return
          feed.stop()
          resolve()
        })
      })
  },
}

type ChangesReader = nano.DocumentScope<unknown>['changesReader']

function ended(open: (reader: ChangesReader) => EventEmitter, pauses = false): Promise<void> {
  const reader = nano(url).use(name).changesReader
  return new Promise((resolve, reject) => {
    let rows = 0
    const changes = open(reader)
    changes.on('batch', (batch: unknown[]) => {
      rows += batch.length
      if (pauses) reader.resume()
    })
    changes.on('end', () => (rows >= count ? resolve() : reject(new Error(`${rows} rows`))))
    changes.on('error', reject)
  })
}

const read = await readers[follower]()
let result: FollowingResult
if (read) {
  const [began, cpu] = [performance.now(), process.cpuUsage()]
  await read()
  const { user, system } = process.cpuUsage(cpu)
  result = { seconds: (performance.now() - began) / 1000, cpuSeconds: (user + system) / 1e6 }
}
process.send!({ result })
process.disconnect()
