/** Commands with which an operator finds stuck documents and resolves them. */
import { expect, onTestFinished, test } from 'vitest'
import { historyDatabases } from '../../sidecar/history/history-databases.ts'
import { createControl } from '../acceptance/control.ts'
import { runInProcess } from '../acceptance/in-process.ts'
import { lookAway, settingsOf } from '../acceptance/registration.ts'
import { startSidecar } from '../acceptance/start.ts'
import { writeModule } from '../acceptance/own-handlers.ts'
import { createTestCouch, deleteDb, uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { basic } from '../support/server-admin.ts'

const AT = '2026-01-01T00:00:00.000Z'
const failed = (_id: string, code: string) => ({
  ...{ _id, type: 'order', state: 'error', error: { code, reason: 'because', at: AT } },
  docstate: { state: 'error', failed_in: 'paid', entry: '1-x' },
})
const parked = (_id: string) => ({
  ...{ _id, type: 'order', state: 'paid' },
  docstate: { state: 'paid', parked: { at: AT, reason: 'its worker was lost' } },
})

/** Three databases that one glob matches, with stuck documents, and a control database. */
async function setUp() {
  const [control, prefix] = [await createControl(), uniqueName('shop')]
  const couch = createTestCouch()
  const names = ['a', 'b', 'c'].map((letter) => `${prefix}-${letter}`)
  for (const name of names) {
    await couch.db(name).create()
    onTestFinished(() => deleteDb(name))
  }
  const settings = settingsOf(control, { SIDECAR_DATABASES: `${prefix}-*` })
  const said = async (...args: string[]) => {
    const { code, stdout, stderr } = await runInProcess(args, settings)
    expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' })
    return stdout
  }
  await said('deploy')
  const [a, b] = names.map((name) => couch.db(name))
  for (const doc of [failed('f1', 'smtp_535'), failed('f2', 'smtp_535'), parked('p')]) await a!.put(doc)
  await b!.put(failed('f3', 'smtp_535'))
  await b!.put(failed('g', 'card_declined'))
  return { control, settings, said, glob: `${prefix}-*`, names, a: a!, b: b! }
}

test('status --stuck shows reason, time and next command; retry and discard apply to a glob', async () => {
  const { said, glob, a, b, names } = await setUp()
  const stuck = await said('status', '--stuck')
  const mend = `couchdb-sidecar retry '${glob}' --type order --state paid`
  for (const line of [
    `  ${glob}  order/paid  failed  3, oldest since ${AT}, such as f1 in ${names[0]}`,
    '    why: smtp_535: because',
    `    next: ${mend} --status failed --code smtp_535, or discard`,
    `  ${glob}  order/paid  parked  1, oldest since ${AT}, such as p in ${names[0]}`,
    '    why: its worker was lost',
    `    next: check whether the effect happened, then: ${mend} --status parked, or discard`,
  ]) {
    expect(stuck.split('\n')).toContain(line)
  }
  const groups = JSON.parse(await said('status', '--stuck', '--json')) as { code?: string; count: number }[]
  expect(groups.map(({ code, count }) => [code, count])).toEqual(
    expect.arrayContaining([
      ['smtp_535', 3],
      ['card_declined', 1],
    ]),
  )
  const filter = [glob, '--type', 'order', '--state', 'paid', '--status', 'failed', '--code', 'smtp_535']
  expect(await said('retry', ...filter, '--dry-run')).toBe(
    `${names[0]}  2\n${names[1]}  1\n3 documents match; nothing was changed\n`,
  )
  expect(await said('retry', ...filter, '--dry-run', '--json', '--limit', '1')).toBe(
    `{"database":"${names[0]}","count":1}\n`,
  )
  expect(await said('retry', glob, '--status', 'ready', '--dry-run'), 'ready documents need no retry').toMatch(/^0 /)
  expect(await a.get('f1')).toMatchObject({ state: 'error' })
  expect(await said('retry', ...filter)).toBe(
    'f1 is back in state paid\nf2 is back in state paid\nf3 is back in state paid\n3 retried\n',
  )
  expect(await b.get('f3')).toMatchObject({ state: 'paid' })
  expect(await said('discard', glob, '--all')).toBe('p is discarded\ng is discarded\n2 discarded\n')
  expect(await b.get('g')).toMatchObject({ error: { code: 'card_declined' }, docstate: { discarded: {} } })
  expect(await said('status', '--stuck')).not.toContain('failed')
  expect(await said('discard', glob, '--undo', '--type', 'order')).toBe(
    'p is restored, in state paid\ng is restored, in state error\n2 restored\n',
  )
  expect((await a.get('p')).docstate).toMatchObject({ parked: {} })
  expect(await said('discard', glob, '--all')).toMatch(/2 discarded/)
  expect(await said('retry', glob, '--status', 'discarded', '--json')).toBe(
    `{"database":"${names[0]}","kind":"done","id":"p","state":"paid"}\n` +
      `{"database":"${names[1]}","kind":"done","id":"g","state":"paid"}\n`,
  )
})

test('list shows each document as a line or as JSON, up to --limit', async () => {
  const { said, settings, glob, names } = await setUp()
  const lines = (await said('list', glob)).trim().split('\n')
  expect(lines.sort()).toEqual([
    ...['f1', 'f2'].map((id) => `${names[0]}  ${id}  order/paid  failed  since ${AT}  smtp_535: because`),
    `${names[0]}  p  order/paid  parked  since ${AT}  its worker was lost`,
    `${names[1]}  f3  order/paid  failed  since ${AT}  smtp_535: because`,
    `${names[1]}  g  order/paid  failed  since ${AT}  card_declined: because`,
  ])
  const json = (await said('list', '--json', '--code', 'card_declined')).trim()
  expect(JSON.parse(json)).toEqual({
    ...{ database: names[1], id: 'g', type: 'order', state: 'error', handledIn: 'paid', status: 'failed', since: AT },
    ...{ code: 'card_declined', reason: 'because' },
  })
  expect((await said('list', names[0]!, '--limit', '1')).trim().split('\n')).toHaveLength(1)
  expect(await said('list', '--older-than', '1h', '--status', 'parked')).toContain('p  order/paid  parked')
  const none = await runInProcess(['list', '--type', 'bill'], settings)
  expect(none).toEqual({ code: 0, stdout: '', stderr: 'no document matches\n' })
})

test('explain and status print JSON with --json', async () => {
  const { said, names } = await setUp()
  const explained = JSON.parse(await said('explain', names[0]!, 'p', '--json')) as { sentences: string[] }
  expect(explained).toMatchObject({ database: names[0], id: 'p' })
  expect(explained.sentences.join(' ')).toContain('The document has been parked since')
  const status = JSON.parse(await said('status', '--json')) as { databases: object[] }
  expect(status.databases).toContainEqual({
    database: names[0],
    counts: [
      { type: 'order', state: 'error', status: 'failed', count: 2 },
      { type: 'order', state: 'paid', status: 'parked', count: 1 },
    ],
  })
  expect(status).toMatchObject({ workers: [], handlers: [], faults: [], settings: {} })
})

test('pause and resume apply to all workers, and status and explain show the pause', async () => {
  const { control, settings, said, names, a } = await setUp()
  await lookAway(control)
  const module = await writeModule(
    "export default { machines: {}, register(control) { control.safe('bill', 'new', async (bill) => ({ ...bill, state: 'paid' })) } }",
  )
  const { url } = await startSidecar({ ...settings, SIDECAR_HANDLERS: module })
  await eventually(async () => expect(await said('status')).toContain('last heartbeat 2'))
  const wrong = await runInProcess(['pause', 'bill/nwe'], settings)
  expect(wrong.code).toBe(2)
  expect(wrong.stderr).toContain('expected a handler of a running worker, got bill/nwe (did you mean bill/new?)')
  expect(await said('pause', 'bill/new')).toContain('bill/new is paused')
  const { username, password } = new URL(settings.COUCHDB_URL!)
  const headers = { authorization: basic(username, password) }
  await eventually(async () =>
    expect(await (await fetch(`${url}/metrics`, { headers })).text()).toMatch(/handler_paused\{.*bill.* 1\n/),
  )
  await a.put({ _id: 'b', type: 'bill', state: 'new' })
  await new Promise((resolve) => setTimeout(resolve, 1500))
  expect(await a.get('b')).toMatchObject({ state: 'new' })
  expect(await said('status')).toContain('bill/new  live settings (config:handlers): paused')
  expect(await said('status', '--stuck')).toContain('why: the handler is paused')
  const explained = await runInProcess(['explain', names[0]!, 'b'], { ...settings, SIDECAR_HANDLERS: module })
  expect(explained.stdout).toContain(
    'The handler is paused (config:handlers). To resume it, run: couchdb-sidecar resume bill/new',
  )
  expect(await said('resume', 'bill/new')).toBe('bill/new is resumed\n')
  await eventually(async () => expect(await a.get('b')).toMatchObject({ state: 'paid' }))
  expect((await control.admin.get('config:handlers')).handlers).toEqual({})
})

test('explain shows the history of a document, even after its deletion', async () => {
  const { control, settings, said, names, a } = await setUp()
  await lookAway(control)
  const module = await writeModule(
    "export default { machines: {}, register(control) { control.safe('bill', 'new', async (bill) => ({ ...bill, state: 'paid' })) } }",
  )
  const name = uniqueName('history')
  const kept = { ...settings, SIDECAR_HISTORY_DB: name, SIDECAR_HANDLERS: module }
  onTestFinished(async () => {
    const couch = createTestCouch()
    for (const database of await historyDatabases(couch, name, new AbortController().signal)) await deleteDb(database)
  })
  await startSidecar(kept)
  await a.put({ _id: 'b', type: 'bill', state: 'new' })
  const explained = async () => (await runInProcess(['explain', names[0]!, 'b'], kept)).stdout
  await eventually(async () =>
    expect(await explained()).toMatch(/At \S+ the document went from new to paid, handled by the worker \S+ in/),
  )
  await a.remove('b', (await a.get('b'))._rev)
  expect(await explained()).toMatch(/^the database \S+ has no document "b"\.\nHistory:\nAt /)
  expect(await said('status')).not.toContain('history')
})

test('commands report a database that is missing or has no design document', async () => {
  const { settings } = await setUp()
  const bare = uniqueName('bare')
  await createTestCouch().db(bare).create()
  onTestFinished(() => deleteDb(bare))
  for (const [name, reason] of [
    ['nowhere', 'there is no database nowhere'],
    [bare, `the database ${bare} is not deployed yet: run "couchdb-sidecar deploy", or start the sidecar`],
  ] as const) {
    const wanted = { code: 1, stdout: '', stderr: `couchdb-sidecar: ${reason}\n` }
    expect(await runInProcess(['list', name], settings)).toEqual(wanted)
    expect(await runInProcess(['retry', name, '--all'], settings)).toEqual(wanted)
  }
})
