/** The packages as they are published, installed into an empty folder: `npm pack`, `npm install`, and they run. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { root } from './acceptance/build.ts'
import { createControl } from './acceptance/control.ts'
import { settingsOf } from './acceptance/registration.ts'
import { eventually } from './support/eventually.ts'

const run = promisify(execFile)
const QUIET = ['--no-audit', '--no-fund', '--prefer-offline']

/** An empty project in which the package of this folder is installed, from its tarball. */
async function install(folder: string, ...more: string[]): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'packed-'))
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', home], { cwd: join(root, folder) })
  const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [{ filename: string }]
  await writeFile(join(home, 'package.json'), '{ "private": true, "type": "module" }')
  await run('npm', ['install', ...QUIET, `./${filename}`, ...more], { cwd: home })
  return home
}

test('the sidecar, without what is embedded, starts beside a CouchDB and deploys', { timeout: 300_000 }, async () => {
  const home = await install('.', '--omit=optional')
  const settings = settingsOf(await createControl())
  const env = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    ...settings,
    SMTP_URL: 'smtp://127.0.0.1:9',
    SIDECAR_PORT: '0',
  }
  const { stdout } = await run('npx', ['couchdb-sidecar', 'status'], { cwd: home, env })
  expect(stdout).toContain('workers')
  const child = spawn(process.execPath, ['node_modules/couchdb-sidecar/dist/sidecar/main.js', 'start'], {
    ...{ cwd: home, env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const gone = once(child, 'close')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await gone
  })
  for await (const line of createInterface({ input: child.stdout })) {
    const { url } = JSON.parse(line) as { url?: string }
    if (url === undefined) continue
    await eventually(async () => expect((await fetch(`${url}/_up`)).status).toBe(200))
    break
  }
  child.kill('SIGTERM')
  expect((await gone)[0]).toBe(0)
})

test('the client loads where PouchDB is', { timeout: 300_000 }, async () => {
  const home = await install('client', 'pouchdb@9')
  const script = `
    import PouchDB from 'pouchdb'
    import * as client from 'couchdb-sidecar-client'
    console.log(typeof PouchDB, Object.keys(client).sort().join())`
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', script], { cwd: home })
  expect(stdout).toMatch(/^function \w+/)
})
