/** One document kills its process at each attempt; the others do not. */
import { readFile, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import type { StoredDoc } from '../../sidecar/couch/documents.ts'
import { eventually } from '../support/eventually.ts'
import { sample, thoroughTest } from '../support/thorough.ts'
import { DIE, startProcessWith, writeModule } from './own-handlers.ts'
import { startProcess, type SidecarProcess } from './process.ts'

const INNOCENT = 90
const POISON = 'o45'
const ids = Array.from({ length: INNOCENT + 1 }, (_, i) => `o${i}`)
const timeout = 240_000

/** A sidecar whose handler notes each document at its beginning, then runs `body`. */
async function startNoting(onLost: 'park' | 'retry', body: string, lease = '5s') {
  const module = await writeModule(`
    import { appendFileSync, existsSync } from 'node:fs'
    import { setTimeout as sleep } from 'node:timers/promises'
    import { defineHandlers } from 'couchdb-sidecar'
    const [notes, go] = ['began', 'go'].map((name) => new URL(name, import.meta.url))
    export default defineHandlers((control) => {
      control.unsafe('order', 'paid', async (order) => {
        appendFileSync(notes, order._id + '\\n')
        ${body}
        return { ...order, state: 'invoiced' }
      }, { onLost: '${onLost}' })
    })`)
  const file = (name: string) => new URL(name, `file://${module}`)
  const stage = await startProcessWith(module, { SIDECAR_LEASE: lease })
  const began = async () => (await readFile(file('began'), 'utf8').catch(() => '')).split('\n').filter(Boolean)
  await stage.orders.bulk(ids.map((_id) => JSON.stringify({ _id, type: 'order', state: 'paid' })))
  return { ...stage, began, go: file('go') }
}

/** No worker runs the document again: it has left its state, or it is parked. */
const isSettled = ({ state, docstate }: StoredDoc) =>
  state !== 'paid' || (docstate as { parked?: unknown } | undefined)?.parked !== undefined

/** Restarts the sidecar after each death, until all documents are settled. Resolves with the number of deaths. */
async function untilSettled(
  { orders, settings, sidecar }: Awaited<ReturnType<typeof startProcessWith>>,
  all: readonly string[] = ids,
): Promise<number> {
  let running: SidecarProcess | undefined = sidecar
  const settled = async () => (await orders.getMany(all)).every(isSettled)
  for (let deaths = 0; ; deaths++) {
    await eventually(async () => expect((await settled()) || !running?.isAlive).toBe(true))
    if (await settled()) return deaths
    running = await startProcess(settings).catch(() => undefined) // it may die during its start
  }
}

const DIES = `if (order._id === '${POISON}') ${DIE}`

const deaths = [
  ['as soon as it is called', DIES],
  ['after 20 ms, while other handlers run', `await sleep(20); ${DIES}`],
] as const

test.each(sample(deaths, 2))(
  'with onLost retry, a handler that kills its process %s is found within five deaths',
  { timeout },
  async (_, body) => {
    const stage = await startNoting('retry', body)
    expect(await untilSettled(stage)).toBeLessThanOrEqual(5)
    const docs = await stage.orders.getMany(ids)
    expect(docs.filter(({ state }) => state !== 'invoiced')).toEqual([
      expect.objectContaining({
        _id: POISON,
        state: 'error',
        error: expect.objectContaining({ code: 'lost' }) as object,
      }),
    ])
    const began = await stage.began()
    const often = ids.filter((id) => id !== POISON && began.filter((one) => one === id).length > 2)
    expect(often, 'documents that ran more than twice').toEqual([])
  },
)

thoroughTest(
  'a slow handler whose process is killed by a handler of another type does not get the error',
  { timeout },
  async () => {
    const module = await writeModule(`
    import { setTimeout as sleep } from 'node:timers/promises'
    import { defineHandlers } from 'couchdb-sidecar'
    export default defineHandlers((control) => {
      control.unsafe('bomb', 'paid', async () => {
        await sleep(300)
        ${DIE}
      }, { onLost: 'retry' })
      control.unsafe('order', 'paid', async (order) => {
        await sleep(2000)
        return { ...order, state: 'invoiced' }
      }, { onLost: 'retry' })
    })`)
    const stage = await startProcessWith(module, { SIDECAR_LEASE: '5s' })
    const docs = [
      { _id: 'slow', type: 'order', state: 'paid' },
      { _id: 'bomb1', type: 'bomb', state: 'paid' },
      { _id: 'bomb2', type: 'bomb', state: 'paid' },
    ]
    await stage.orders.bulk(docs.map((doc) => JSON.stringify(doc)))
    const all = docs.map(({ _id }) => _id)
    await untilSettled(stage, all)
    const ended = await stage.orders.getMany(all)
    expect(ended.map(({ state }) => state)).toEqual(['invoiced', 'error', 'error'])
  },
)

test('with onLost park, a handler that kills its process at once parks no other document', { timeout }, async () => {
  const stage = await startNoting('park', DIES)
  expect(await untilSettled(stage)).toBe(1)
  const [docs, began] = [await stage.orders.getMany(ids), await stage.began()]
  const parked = docs.flatMap(({ _id, state }) => (state === 'invoiced' ? [] : [_id]))
  expect(parked).toContain(POISON)
  expect(parked.filter((id) => !began.includes(id))).toEqual([])
  expect(began.toSorted()).toEqual(ids.toSorted()) // each document once
})

test('kill -9 parks only the documents whose handlers had begun', { timeout }, async () => {
  // A shorter lease would lose claims on a busy machine.
  const stage = await startNoting('park', 'while (!existsSync(go)) await sleep(50)', '8s')
  await eventually(async () => expect(await stage.began()).toHaveLength(32))
  const begun = await stage.began()
  await stage.sidecar.kill()
  await writeFile(stage.go, '')
  await startProcess(stage.settings)
  await eventually(async () => expect((await stage.orders.getMany(ids)).every(isSettled)).toBe(true))
  const docs = await stage.orders.getMany(ids)
  expect(docs.flatMap(({ _id, state }) => (state === 'invoiced' ? [] : [_id])).toSorted()).toEqual(begun.toSorted())
})
