/** Output and exit code of each command; test/acceptance/command-line.process.test.ts checks real processes. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createControl, urlOf } from '../acceptance/control.ts'
import { writeModule } from '../acceptance/own-handlers.ts'
import { startSidecar } from '../acceptance/start.ts'
import { newDevice, settingsOf } from '../acceptance/registration.ts'
import { ddocFolder } from '../deploy/folder.ts'
import { couchUrl, deleteDb, uniqueName } from '../support/couchdb.ts'
import { pass, refuse, startFaultyProxy } from '../support/faulty-proxy.ts'
import { runInProcess } from '../acceptance/in-process.ts'

const commands = [
  ...['init', 'dev', 'start', 'deploy', 'status', 'explain', 'list', 'retry', 'discard', 'pause', 'resume'],
  'version',
]

test('--help lists the commands, and each command has its own help', async () => {
  const { code, stdout } = await runInProcess(['--help'])
  expect(code).toBe(0)
  for (const command of commands) {
    expect(stdout).toMatch(new RegExp(`^  ${command} `, 'm'))
    const help = await runInProcess([command, '--help'])
    expect(help).toMatchObject({ code: 0, stderr: '' })
    expect(help.stdout).toMatch(new RegExp(`^Usage: couchdb-sidecar ${command} `))
  }
})

test('init creates nested new folders, and refuses files and paths that cannot become folders', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'init-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'file'), '')
  expect(await runInProcess(['init', join(folder, 'a/b')])).toMatchObject({ code: 0, stderr: '' })
  const { dependencies } = JSON.parse(await readFile(join(folder, 'a/b/package.json'), 'utf8')) as {
    dependencies: unknown
  }
  expect(dependencies, 'the dependencies of a checkout').toEqual({
    'couchdb-sidecar': new URL('../..', import.meta.url).href.slice(0, -1),
  })
  for (const path of [join(folder, 'file'), join(folder, 'file/in'), '/proc/new', '/proc/new/in']) {
    const { code, stderr } = await runInProcess(['init', path])
    expect({ path, code }).toEqual({ path, code: 2 })
    expect(stderr).toMatch(/^couchdb-sidecar: init: expected a folder that can be made, got .+: E\w+: .+\n$/)
  }
})

test('deploy previews its changes, applies them, and then changes nothing; status shows both states', async () => {
  const name = uniqueName('control')
  onTestFinished(() => deleteDb(name))
  const settings = { COUCHDB_URL: couchUrl(), SIDECAR_CONTROL_DB: name }
  const said = async (...args: string[]) => {
    const { code, stdout, stderr } = await runInProcess(args, settings)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return stdout
  }
  expect(await said('deploy', '--dry-run')).toContain('_design/docstate would be created')
  expect(await said('status')).toContain('not deployed yet')
  expect(await said('deploy')).toContain('_design/docstate created')
  expect(await said('deploy')).toContain('_design/docstate unchanged')
  expect(await said('status')).toContain('no documents')
})

describe('a typo in a machine', () => {
  const moduleOf = (machines: object, handlers: string) =>
    writeModule(`export default { machines: ${JSON.stringify(machines)}, register(control) { ${handlers} } }`)
  const invoiced = { invoiced: {} }
  const paid = { mode: 'safe', create: 'client', next: { invoiced: 'sidecar' } }

  test.each(['start', 'deploy'])('is a fault at %s, with the other faults of all modules', async (command) => {
    const modules = [
      await moduleOf({ order: { paid: { ...paid, next: { invoicd: 'sidecar' } }, ...invoiced } }, ''),
      await moduleOf({ order: { paid, ...invoiced } }, `control.safe('oder', 'paid', async () => {})`),
    ]
    const settings = {
      COUCHDB_URL: couchUrl(),
      SIDECAR_CONTROL_DB: uniqueName('never'),
      SIDECAR_HANDLERS: modules.join(),
    }
    const { code, stdout, stderr } = await runInProcess([command], settings)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(
      `${modules[0]}: the machine of order: state paid: next: expected one of paid, invoiced; got`,
    )
    expect(stderr).toContain(`${modules[1]}: safe handler for oder in state paid: expected a type that has a machine`)
    expect(stderr).toContain('got invoicd (did you mean invoiced?)')
    expect(stderr).toContain('got oder (did you mean order?)')
  })

  test('is a warning of deploy and start if it may be intended, and both continue', async () => {
    const control = await createControl()
    const module = await moduleOf({ order: { paid, ...invoiced, lost: {} } }, '')
    const settings = settingsOf(control, { SIDECAR_HANDLERS: module })
    const said = ['no document can reach state lost', 'declares state paid as safe, and no handler here takes it']
    const { code, stderr } = await runInProcess(['deploy'], settings)
    expect(code).toBe(0)
    for (const one of said) expect(stderr).toContain(one)
    const { log } = await startSidecar(settings)
    const warned = log.filter(({ level }) => level === 40).map(({ msg }) => msg)
    for (const one of said) expect(warned).toContainEqual(expect.stringContaining(one))
  })
})

test('commands report an unreachable server without its password', async () => {
  const proxy = await startFaultyProxy()
  await proxy.down()
  const url = Object.assign(new URL(proxy.url), { password: 's3cret' }).href
  for (const command of [['deploy'], ['status'], ['explain', 'control', 'x'], ['retry', 'control', 'x']]) {
    const { code, stderr } = await runInProcess(command, { COUCHDB_URL: url })
    expect({ command, code }).toEqual({ command, code: 1 })
    expect(stderr).toContain('ECONNREFUSED')
    expect(stderr).not.toContain('s3cret')
  }
})

test('commands report wrong credentials, and users without the right to deploy', async () => {
  const control = await createControl()
  // Not for the admin: CouchDB locks out a name after five wrong passwords.
  for (const url of [urlOf('nobody', 'wr0ng'), urlOf()]) {
    const { code, stderr } = await runInProcess(['deploy'], settingsOf(control, { COUCHDB_URL: url }))
    expect({ url, code }).toEqual({ url, code: 1 })
    expect(stderr).toContain('refuses')
    expect(stderr).not.toContain('wr0ng')
  }
  const unknown = settingsOf(control, { COUCHDB_URL: urlOf(uniqueName('unknown'), 'wr0ng') })
  const { code, stderr } = await runInProcess(['status'], unknown)
  expect(code).toBe(1)
  expect(stderr).toContain('COUCHDB_URL: expected the name and password of a server admin')
  expect(stderr).not.toContain('wr0ng')
})

test('retry and explain report missing documents, and retry reports documents that have not failed', async () => {
  const control = await createControl()
  await control.admin.put({ _id: 'fine' })
  for (const [command, id, said] of [
    ['retry', 'nowhere', 'there is no document "nowhere"'],
    ['retry', 'fine', 'it has not failed and does not wait'],
    ['explain', 'nowhere', `the database ${control.name} has no document "nowhere"`],
  ] as const) {
    const { code, stderr } = await runInProcess([command, control.name, id], settingsOf(control))
    expect({ command, id, code }).toEqual({ command, id, code: 1 })
    expect(stderr).toContain(said)
  }
})

test('retry --all retries one document, and reports that the other changed in the meantime', async () => {
  const [control, proxy] = [await createControl(), await startFaultyProxy()]
  const settings = settingsOf(control, { COUCHDB_URL: proxy.url })
  expect(await runInProcess(['deploy'], settings)).toMatchObject({ code: 0 })
  const docstate = { state: 'new', parked: { at: '2026-01-01T00:00:00.000Z', reason: 'lost' } }
  for (const _id of ['busy', 'calm']) await control.admin.put({ ...newDevice({ _id, docstate }), _id })
  const conflict = refuse(409, { error: 'conflict', reason: 'Document update conflict.' })
  proxy.plan(({ method, path }) => (method === 'PUT' && path.endsWith('/busy') ? conflict : undefined))
  proxy.next(
    async (exchange) => {
      await control.admin.put({ ...(await control.admin.get('busy')), note: 'by hand' })
      await pass(exchange)
    },
    ({ path }) => path.endsWith('/_bulk_docs'),
  )
  expect(await runInProcess(['retry', control.name, '--all'], settings)).toEqual({
    code: 1,
    stdout: 'calm is back in state new\nbusy changed in the meantime and was left as it is\n1 retried\n',
    stderr: 'couchdb-sidecar: 1 changed in the meantime: run the command again\n',
  })
})

test.each([
  [['nonsense'], "unknown command 'nonsense'"],
  [['start', '--nonsense'], "unknown option '--nonsense'"],
  [['start', 'now'], 'too many arguments'],
  [['explain', 'control'], "missing required argument 'docid'"],
  [['retry', 'control'], 'either a document id, or --all or a filter'],
  [['retry', 'control', 'a', '--dry-run'], 'retry: --dry-run: expected no document id'],
  [['discard', 'control', 'a', '--type', 'order'], 'either a document id, or --all or a filter'],
  [['discard', 'control', '--status', 'ready'], 'discard: expected --type and --state with --status ready'],
  [['list', '--status', 'lost'], 'list: --status: expected some of ready, retry, timeout, claimed, parked, handled'],
  [['list', '--older-than', 'long'], 'list: --older-than: expected a time such as 90s, 30m, 2h or 7d, got long'],
  [['list', '--older-than', '99999d'], 'list: --older-than: expected a time such as 90s, 30m, 2h or 7d, got 99999d'],
  [
    ['list', '--older-than', '2h', '--status', 'ready,failed'],
    'list: --older-than: documents do not record since when they are ready',
  ],
  [['list', '--limit', '0'], 'list: --limit: expected a whole number from 1, got 0'],
  [['pause'], "missing required argument 'handlers'"],
  [['deploy', '--ddocs', 'here'], '--ddocs and --database'],
  [['deploy', '--prune'], '--prune: expected --ddocs'],
  [['deploy', '--rollback', '--dry-run'], '--rollback: expected no other flag'],
  [['deploy', '--rollback', '--remove-machines'], '--rollback: expected no other flag'],
  [['deploy', '--rollback', '--target', 'es5'], '--rollback: expected no other flag'],
  [['deploy', '--rollback', '--no-disk-check'], '--rollback: expected no other flag'],
  [['deploy', '--rollback', '--database', ''], '--database: expected a name or a glob, got nothing'],
  [['status'], 'COUCHDB_URL: expected'],
])('wrong usage is reported with exit code 2: %j', async (args, said) => {
  const { code, stdout, stderr } = await runInProcess(args)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(said)
})

test('start reports a missing folder of design documents for channels', async () => {
  const { code, stderr } = await runInProcess(['start'], { COUCHDB_URL: couchUrl(), SIDECAR_CHANNEL_DDOCS: '/nowhere' })
  expect(code).toBe(2)
  expect(stderr).toContain('SIDECAR_CHANNEL_DDOCS: /nowhere: expected a folder')
})

test('start reports two folders for channels that contain design documents of the same name', async () => {
  const view = { 'by/views/v/map.js': 'export default function (doc) { emit(doc._id) }' }
  const folders = [ddocFolder(view), ddocFolder(view)]
  const settings = { COUCHDB_URL: couchUrl(), SIDECAR_CHANNEL_DDOCS: folders.join(',') }
  const { code, stderr } = await runInProcess(['start'], settings)
  expect(code).toBe(2)
  expect(stderr).toContain(`SIDECAR_CHANNEL_DDOCS: ${folders[1]}: _design/by is in ${folders[0]} already`)
})

test('commands escape control characters and line breaks in the content of documents', async () => {
  const control = await createControl()
  const settings = settingsOf(control)
  expect((await runInProcess(['deploy'], settings)).code).toBe(0)
  const evil = '\u001b[2J\u009b1A\u202eok\nall is well'
  const [id, other] = [`a${evil}`, `b${evil}`]
  const docstate = { failed_in: `new${evil}`, attempts: 1, failure: { at: evil, code: evil, reason: evil } }
  await control.admin.put({ _id: id, type: `t${evil}`, state: 'error', error: { code: evil, reason: evil }, docstate })
  await control.admin.put({ _id: other, type: `t${evil}`, state: `s${evil}` })
  const runs = [
    ['status'],
    ...[id, other].map((one) => ['explain', control.name, one]),
    ['retry', control.name, other],
    ['retry', control.name, id],
  ]
  for (const args of runs) {
    const { stdout, stderr } = await runInProcess(args, settings)
    expect(stdout + stderr).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u)
    expect(stdout + stderr).toContain('\\u001b[2J\\u009b1A\\u202eok\\nall is well')
    expect(stdout + stderr).not.toMatch(/^all is well/m)
  }
})
