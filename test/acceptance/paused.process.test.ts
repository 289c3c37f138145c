/** A worker resumes after a pause that is longer than its lease. */
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createTestCouch, needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startProcess } from './process.ts'
import { startRegistrationProcess } from './registration.ts'

/** A handler that writes lines to a file: its beginning, effects while it holds the claim, and its end. */
const handlers = (file: string, onLost: string) => `
  import { appendFile } from 'node:fs/promises'
  const say = (...words) => appendFile(${JSON.stringify(file)}, words.join(' ') + '\\n')
  export default { machines: {}, register(control) {
    control.unsafe('job', 'new', async (doc, ctx) => {
      await say(process.pid, 'begins', ctx.key)
      for (let step = 0; step < 40 && !ctx.signal.aborted; step++) {
        await new Promise((resolve) => setTimeout(resolve, 50))
        if (!ctx.signal.aborted) await say(process.pid, 'effect')
      }
      await say(process.pid, ctx.signal.aborted ? 'aborted' : 'ends')
      return { ...doc, state: 'done', by: process.pid }
    }, { onLost: '${onLost}' })
  } }`

async function setUp(onLost: string) {
  needs('sidecar process')
  const folder = await mkdtemp(join(tmpdir(), 'paused-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const [module, file] = [join(folder, 'handlers.mjs'), join(folder, 'effects')]
  await writeFile(module, handlers(file, onLost))
  await appendFile(file, '')
  const settings = { SIDECAR_HANDLERS: module, SIDECAR_LEASE: '5s' }
  const registration = await startRegistrationProcess({ ...settings, SIDECAR_NAME: 'paused' })
  const db = createTestCouch().db(registration.control.name)
  const lines = async () => (await readFile(file, 'utf8')).split('\n').filter(Boolean)
  await db.put({ _id: 'job', type: 'job', state: 'new' })
  await eventually(async () => expect(await lines()).toContain(`${registration.sidecar.pid} effect`))
  process.kill(registration.sidecar.pid, 'SIGSTOP')
  const other = await startProcess({ ...registration.settings, SIDECAR_NAME: 'other' })
  return { db, lines, paused: registration.sidecar, other }
}

test('with onLost retry, another worker uses the same key, and the paused one neither continues nor saves', async () => {
  const { db, lines, paused, other } = await setUp('retry')
  await eventually(async () => expect(await db.get('job')).toMatchObject({ state: 'done', by: other.pid }))
  const { _rev } = await db.get('job')
  process.kill(paused.pid, 'SIGCONT')
  await eventually(async () => expect(await lines()).toContain(`${paused.pid} aborted`))
  const all = await lines()
  const woken = all.slice(all.findLastIndex((line) => line.startsWith(`${other.pid} ends`)))
  expect(woken.filter((line) => line === `${paused.pid} effect`).length).toBeLessThanOrEqual(1) // the one in progress
  const keys = all.filter((line) => line.includes('begins')).map((line) => line.split(' ')[2])
  expect(keys).toHaveLength(2)
  expect(new Set(keys).size).toBe(1)
  await new Promise((resolve) => setTimeout(resolve, 1000))
  expect((await db.get('job'))._rev).toBe(_rev)
  await eventually(async () =>
    expect(
      (await db.withPrefix('worker:')).map(({ worker }) => worker),
      'the paused worker is in the list again',
    ).toEqual(['other', 'paused']),
  )
})

test('with onLost park, no worker runs the document again, and the paused one neither continues nor saves', async () => {
  const { db, lines, paused } = await setUp('park')
  await eventually(async () => expect((await db.get('job')).docstate).toMatchObject({ parked: {} }))
  const { _rev } = await db.get('job')
  process.kill(paused.pid, 'SIGCONT')
  await eventually(async () => expect(await lines()).toContain(`${paused.pid} aborted`))
  await new Promise((resolve) => setTimeout(resolve, 1000))
  expect((await db.get('job'))._rev).toBe(_rev)
  expect((await lines()).filter((line) => line.includes('begins'))).toHaveLength(1)
})
