/** Handler options that hold across workers, while three share the work and one is killed. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { couchUrl } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { basic } from '../support/server-admin.ts'
import { startThree, writeModule } from './own-handlers.ts'

/** Each handler notes the beginning and end of a run: type, id, key, worker, milliseconds. */
const HANDLERS = `
  import { appendFileSync } from 'node:fs'
  import { setTimeout as sleep } from 'node:timers/promises'
  import { defineHandlers } from 'couchdb-sidecar'
  const notes = new URL('notes', import.meta.url)
  const note = (what, { type, _id, customer = '' }) =>
    appendFileSync(notes, JSON.stringify([what, type, _id, customer, process.env.SIDECAR_NAME, Date.now()]) + '\\n')
  const running = (length) => async (doc) => {
    note('begins', doc)
    await sleep(length(doc))
    note('ends', doc)
    return { ...doc, state: 'done' }
  }
  export default defineHandlers((control) => {
    const isAlone = ({ customer }) => customer !== 'hot' && customer !== 'warm'
    control.unsafe('order', 'new', running((order) => (isAlone(order) ? 1000 : 30)), { key: (order) => order.customer, onLost: 'retry' })
    control.safe('call', 'new', running(() => 1), { limit: { count: 20, per: '2s' } })
    control.unsafe('job', 'new', running(() => 100), { globalConcurrency: 2, onLost: 'retry' })
  })`

interface Run {
  readonly type: string
  readonly key: string
  readonly worker: string
  readonly from: number
  readonly to: number
}

type Note = readonly ['begins' | 'ends', string, string, string, string, number]

/** Ended runs only; the last runs of a killed worker have no end. */
function runsIn(text: string): Run[] {
  const begun = new Map<string, number>()
  return text
    .split('\n')
    .filter(Boolean)
    .flatMap((line) => {
      const [what, type, id, key, worker, at] = JSON.parse(line) as Note
      const name = JSON.stringify([type, id, worker])
      if (what === 'begins') begun.set(name, at)
      return what === 'begins' ? [] : [{ type, key, worker, from: begun.get(name)!, to: at }]
    })
}

async function workersSeenBy(url: string): Promise<number> {
  const { username, password } = new URL(couchUrl())
  const metrics = await fetch(`${url}/metrics`, { headers: { authorization: basic(username, password) } })
  return Number(/^couchdb_sidecar_workers (\d+)$/m.exec(await metrics.text())?.[1])
}

/** The highest number of concurrent runs. */
const mostAtOnce = (runs: readonly Run[]): number =>
  Math.max(0, ...runs.map(({ from }) => runs.filter((run) => run.from <= from && from < run.to).length))

test('key, limit and globalConcurrency hold for three workers, one of which is killed', async () => {
  const module = await writeModule(HANDLERS)
  const { orders, workers } = await startThree(module)
  await eventually(async () => {
    const seen = await Promise.all(workers.map(({ url }) => workersSeenBy(url)))
    expect(seen).toEqual([3, 3, 3]) // until then each partition is computed from fewer workers
  })

  const docs = (count: number, type: string, more: (n: number) => object = () => ({})) =>
    Array.from({ length: count }, (_, n) => ({ _id: `${type}${n}`, type, state: 'new', ...more(n) }))
  const hot = (n: number) => ({ customer: n % 3 === 0 ? `c${n}` : n % 3 === 1 ? 'hot' : 'warm' })
  const all = [...docs(120, 'order', hot), ...docs(60, 'call'), ...docs(60, 'job')]
  await orders.bulk(all.map((doc) => JSON.stringify(doc)))
  const notes = async () => runsIn(await readFile(new URL('notes', `file://${module}`), 'utf8').catch(() => ''))
  await eventually(async () => expect((await notes()).length).toBeGreaterThan(60))
  await workers[1]!.kill()

  const ids = all.map(({ _id }) => _id)
  const left = async () => (await orders.getMany(ids)).filter(({ state }) => state !== 'done')
  await eventually(async () => expect(await left()).toEqual([]), { within: 120_000 })
  const runs = await notes()
  const of = (type: string) => runs.filter((run) => run.type === type)
  const keys = new Set(of('order').map(({ key }) => key))
  for (const key of keys) expect(mostAtOnce(of('order').filter((run) => run.key === key)), key).toBe(1)
  expect(mostAtOnce(of('order')), 'other keys do not wait').toBeGreaterThan(2)
  expect(mostAtOnce(of('job'))).toBe(2)
  const begins = of('call').map(({ from }) => from)
  // 20 in 2 s, evenly spaced; test/docstate/limits.test.ts checks each window with a manual clock
  expect(Math.max(...begins) - Math.min(...begins)).toBeGreaterThan(5000)
  expect(new Set(of('call').map(({ worker }) => worker)).size, 'several workers took calls').toBeGreaterThan(1)
})
