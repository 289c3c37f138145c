import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { couchUrl, deleteDb, uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { program, root } from './build.ts'
import { runProcess } from './process.ts'
import { newDevice, startRegistration } from './registration.ts'

/** An address on which no server listens any more. */
async function deserted(): Promise<string> {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  await once(server.close(), 'close')
  return `127.0.0.1:${port}`
}

describe('exit 0', () => {
  test('a command does its work although its output pipe is closed', async () => {
    const name = uniqueName('control')
    onTestFinished(() => deleteDb(name))
    const settings = { COUCHDB_URL: couchUrl(), SIDECAR_CONTROL_DB: name }
    const child = spawn(process.execPath, [program, 'deploy'], { env: settings, stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.destroy()
    const [stderr] = await Promise.all([text(child.stderr), once(child, 'close')])
    expect(child.exitCode, stderr).toBe(0)
    expect(stderr).not.toMatch(/error|EPIPE/i) // it may print its progress
    const { stdout } = await runProcess(['deploy', '--dry-run'], settings)
    expect(stdout).toContain('_design/docstate unchanged')
  })

  test('--help lists the commands', async () => {
    const { code, stdout, stderr } = await runProcess(['--help'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    for (const command of ['start', 'deploy', 'status', 'explain', 'retry', 'version']) {
      expect(stdout).toMatch(new RegExp(`^  ${command} `, 'm'))
    }
  })

  test('version prints the version of the package', async () => {
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
    expect(await runProcess(['version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
    const { stdout } = await promisify(execFile)('npx', ['couchdb-sidecar', 'version'], { cwd: root })
    expect(stdout, 'as the README says for a checkout').toBe(`${version}\n`)
  })

  test('status and explain report a failed document, and retry moves it back to its state', async () => {
    const registration = await startRegistration()
    const { control, settings, smtp } = registration
    smtp.behave({ kind: 'refuse-recipient', code: 550 })
    const device = newDevice()
    await control.member.put(device)
    await eventually(async () =>
      expect((await runProcess(['status'], settings)).stdout).toMatch(/^ {2}device +error +1 {2}failed/m),
    )
    const { stdout } = await runProcess(['explain', control.name, device._id], settings)
    expect(stdout).toContain(`${device._id} is of type device, in state error`)
    expect(stdout).toContain('The document failed in state new')
    expect(stdout).toContain('mail_refused')
    smtp.behave({ kind: 'accept' })
    expect(await runProcess(['retry', control.name, '--all', '--type', 'device'], settings)).toEqual({
      code: 0,
      stdout: `${device._id} is back in state new\n1 retried\n`,
      stderr: '',
    })
    await eventually(() => expect(smtp.accepted).toHaveLength(1))
  })
})

describe('exit 1', () => {
  test('an unreachable server is reported by name', async () => {
    const server = await deserted()
    const { code, stderr } = await runProcess(['status'], { COUCHDB_URL: `http://admin:s3cret@${server}` })
    expect(code).toBe(1)
    expect(stderr).toContain('ECONNREFUSED')
    expect(stderr).not.toContain('s3cret')
  })
})

describe('exit 2', () => {
  test('all faults in the settings are reported at once, without secrets', async () => {
    const { code, stdout, stderr } = await runProcess(['start', '--grace', 'long'], {
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

  test('a port that is in use is reported', async () => {
    const { port } = new URL(couchUrl())
    const { code, stderr } = await runProcess(['start'], { COUCHDB_URL: couchUrl(), SIDECAR_PORT: port })
    expect(code).toBe(2)
    expect(stderr).toContain(`SIDECAR_PORT: expected a free port, got ${port}`)
  })
})
