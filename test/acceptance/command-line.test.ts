import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ddocFolder } from '../deploy/folder.ts'
import { couchUrl, deleteDb, uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { refuse, startFaultyProxy } from '../support/faulty-proxy.ts'
import { program, root } from './build.ts'
import { createControl, urlOf } from './control.ts'
import { runCommand } from './process.ts'
import { newDevice, settingsOf, startRegistration } from './registration.ts'

const commands = ['start', 'deploy', 'status', 'explain', 'retry', 'version']

/** An address where nobody listens any more. */
async function deserted(): Promise<string> {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  await once(server.close(), 'close')
  return `127.0.0.1:${port}`
}

describe('exit 0', () => {
  test.each(['deploy', 'status'])('%s does the same where nobody reads what it prints', async (command) => {
    const name = uniqueName('control')
    onTestFinished(() => deleteDb(name))
    const settings = { COUCHDB_URL: couchUrl(), SIDECAR_CONTROL_DB: name }
    const child = spawn(process.execPath, [program, command], { env: settings, stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.destroy()
    const [stderr] = await Promise.all([text(child.stderr), once(child, 'close')])
    expect([child.exitCode, stderr]).toEqual([0, ''])
    const { stdout } = await runCommand(['deploy', '--dry-run'], settings)
    expect(stdout).toContain(command === 'deploy' ? '_design/docstate unchanged' : '_design/docstate would be created')
  })

  test('--help lists the commands, and each tells about itself', async () => {
    const { code, stdout } = await runCommand(['--help'])
    expect(code).toBe(0)
    for (const command of commands) {
      expect(stdout).toMatch(new RegExp(`^  ${command} `, 'm'))
      const help = await runCommand([command, '--help'])
      expect(help).toMatchObject({ code: 0, stderr: '' })
      expect(help.stdout).toMatch(new RegExp(`^Usage: couchdb-sidecar ${command} `))
    }
  })

  test('version prints that of the package', async () => {
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
    expect(await runCommand(['version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
    const { stdout } = await promisify(execFile)('npx', ['couchdb-sidecar', 'version'], { cwd: root })
    expect(stdout, 'as the README tells for a checkout').toBe(`${version}\n`)
  })

  test('deploy shows, does, and finds nothing more to do; status counts', async () => {
    const name = uniqueName('control')
    onTestFinished(() => deleteDb(name))
    const settings = { COUCHDB_URL: couchUrl(), SIDECAR_CONTROL_DB: name }
    const said = async (...args: string[]) => {
      const { code, stdout, stderr } = await runCommand(args, settings)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      return stdout
    }
    expect(await said('deploy', '--dry-run')).toContain('_design/docstate would be created')
    expect(await said('status')).toContain('not deployed yet')
    expect(await said('deploy')).toContain('_design/docstate created')
    expect(await said('deploy')).toContain('_design/docstate unchanged')
    expect(await said('status')).toContain('no documents')
  })

  test('status and explain tell about a document, and retry brings it back', async () => {
    const registration = await startRegistration()
    const { control, settings, smtp } = registration
    smtp.behave({ kind: 'refuse-recipient', code: 550 })
    const device = newDevice()
    await control.member.put(device)
    await eventually(async () =>
      expect((await runCommand(['status'], settings)).stdout).toMatch(/^ {2}device {2}error {2}1$/m),
    )
    const { stdout } = await runCommand(['explain', control.name, device._id], settings)
    expect(stdout).toContain(`${device._id} is of type device, in state error`)
    expect(stdout).toContain('It failed in state new')
    expect(stdout).toContain('mail_refused')
    smtp.behave({ kind: 'accept' })
    expect(await runCommand(['retry', control.name, '--all', '--type', 'device'], settings)).toEqual({
      code: 0,
      stdout: `${device._id} is back in state new\n1 brought back\n`,
      stderr: '',
    })
    await eventually(() => expect(smtp.accepted).toHaveLength(1))
  })
})

describe('exit 1', () => {
  test('a server that nobody can reach is named', async () => {
    const server = await deserted()
    for (const command of [['deploy'], ['status'], ['explain', 'control', 'x'], ['retry', 'control', 'x']]) {
      const { code, stderr } = await runCommand(command, { COUCHDB_URL: `http://admin:s3cret@${server}` })
      expect({ command, code }).toEqual({ command, code: 1 })
      expect(stderr).toContain('ECONNREFUSED')
      expect(stderr).not.toContain('s3cret')
    }
  })

  test('a server that refuses the password, or that has not the right to deploy, says so', async () => {
    const control = await createControl()
    // Not the admin's password: CouchDB locks out a user after five wrong ones.
    for (const url of [urlOf('nobody', 'wr0ng'), urlOf()]) {
      const { code, stderr } = await runCommand(['deploy'], settingsOf(control, { COUCHDB_URL: url }))
      expect({ url, code }).toEqual({ url, code: 1 })
      expect(stderr).toContain('refuses')
      expect(stderr).not.toContain('wr0ng')
    }
    const nobody = settingsOf(control, { COUCHDB_URL: urlOf(uniqueName('nobody'), 'wr0ng') })
    const { code, stderr } = await runCommand(['status'], nobody)
    expect(code).toBe(1)
    expect(stderr).toContain('COUCHDB_URL: expected the name and password of a server admin')
    expect(stderr).not.toContain('wr0ng')
  })

  test('a document that is not there, or that nothing is wrong with', async () => {
    const control = await createControl()
    await control.admin.put({ _id: 'fine' })
    for (const [command, id, said] of [
      ['retry', 'nowhere', 'there is no document nowhere'],
      ['retry', 'fine', 'it neither failed nor waits'],
      ['explain', 'nowhere', `${control.name} has no document nowhere`],
    ] as const) {
      const { code, stderr } = await runCommand([command, control.name, id], settingsOf(control))
      expect({ command, id, code }).toEqual({ command, id, code: 1 })
      expect(stderr).toContain(said)
    }
  })

  test('retry of all that brings back one, and finds that the other changed meanwhile', async () => {
    const [control, proxy] = [await createControl(), await startFaultyProxy()]
    const settings = settingsOf(control, { COUCHDB_URL: proxy.url })
    expect(await runCommand(['deploy'], settings)).toMatchObject({ code: 0 })
    const docstate = { state: 'new', parked: { at: '2026-01-01T00:00:00.000Z', reason: 'lost' } }
    for (const _id of ['busy', 'calm']) await control.admin.put({ ...newDevice({ _id, docstate }), _id })
    const conflict = refuse(409, { error: 'conflict', reason: 'Document update conflict.' })
    proxy.plan(({ method, path }) => (method === 'PUT' && path.endsWith('/busy') ? conflict : undefined))
    expect(await runCommand(['retry', control.name, '--all'], settings)).toEqual({
      code: 1,
      stdout: 'calm is back in state new\nbusy changed meanwhile, and is left as it is now\n1 brought back\n',
      stderr: 'couchdb-sidecar: 1 changed meanwhile: another run looks at what they are now\n',
    })
  })
})

describe('exit 2', () => {
  test('every fault in the settings is named at once, and no secret', async () => {
    const { code, stdout, stderr } = await runCommand(['start', '--grace', 'long'], {
      COUCHDB_URL: 'ftp://admin:hunter2@db',
      COUCHDB_PASSWORD: 'hunter3',
      SMTP_URL: 'http://me:hunter4@mail',
      SIDECAR_PORT: '70000',
      SIDECAR_CONFRIM_EXPIRY: '1h',
      SIDECAR_LOG_LEVEL: 'loud',
      SIDECAR_MAIL_FROM: 'nobody',
    })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    for (const [setting, came] of Object.entries({
      COUCHDB_URL: '"ftp://***@db"',
      COUCHDB_USER: 'got none',
      SMTP_URL: '"http://***@mail"',
      SIDECAR_PORT: '"70000"',
      SIDECAR_CONFRIM_EXPIRY: 'did you mean SIDECAR_CONFIRM_EXPIRY?',
      SIDECAR_LOG_LEVEL: '"loud"',
      SIDECAR_MAIL_FROM: '"nobody"',
      SIDECAR_GRACE: '"long" from the command line',
    })) {
      const lines = stderr.split('\n').filter((line) => line.startsWith(`couchdb-sidecar: ${setting}: expected `))
      expect(lines.join(), setting).toContain(came)
    }
    expect(stderr).not.toMatch(/hunter/)
  })

  test.each([
    [['nonsense'], "unknown command 'nonsense'"],
    [['start', '--nonsense'], "unknown option '--nonsense'"],
    [['start', 'now'], 'too many arguments'],
    [['explain', 'control'], "missing required argument 'docid'"],
    [['retry', 'control'], 'either a document id or --all'],
    [['deploy', '--ddocs', 'here'], '--ddocs and --database'],
    [['deploy', '--prune'], '--prune: expected --ddocs'],
    [['deploy', '--rollback', '--dry-run'], '--rollback: expected no other flag'],
    [['deploy', '--rollback', '--remove-machines'], '--rollback: expected no other flag'],
    [['deploy', '--rollback', '--target', 'es5'], '--rollback: expected no other flag'],
    [['deploy', '--rollback', '--no-disk-check'], '--rollback: expected no other flag'],
    [['deploy', '--rollback', '--database', ''], '--database: expected a name or a glob, got nothing'],
    [['status'], 'COUCHDB_URL: expected'],
  ])('wrong usage: %j', async (args, said) => {
    const { code, stdout, stderr } = await runCommand(args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(said)
  })

  test('a folder of design documents for channels that is not there', async () => {
    const { code, stderr } = await runCommand(['start'], { COUCHDB_URL: couchUrl(), SIDECAR_CHANNEL_DDOCS: '/nowhere' })
    expect(code).toBe(2)
    expect(stderr).toContain('SIDECAR_CHANNEL_DDOCS: /nowhere: expected a folder')
  })

  test('two folders for channels with a design document of one name', async () => {
    const view = { 'by/views/v/map.js': 'export default function (doc) { emit(doc._id) }' }
    const folders = [ddocFolder(view), ddocFolder(view)]
    const settings = { COUCHDB_URL: couchUrl(), SIDECAR_CHANNEL_DDOCS: folders.join(',') }
    const { code, stderr } = await runCommand(['start'], settings)
    expect(code).toBe(2)
    expect(stderr).toContain(`SIDECAR_CHANNEL_DDOCS: ${folders[1]}: _design/by is in ${folders[0]} already`)
  })

  test('a port that somebody else has', async () => {
    const { port } = new URL(couchUrl())
    const { code, stderr } = await runCommand(['start'], { COUCHDB_URL: couchUrl(), SIDECAR_PORT: port })
    expect(code).toBe(2)
    expect(stderr).toContain(`SIDECAR_PORT: expected a free port, got ${port}`)
  })
})
