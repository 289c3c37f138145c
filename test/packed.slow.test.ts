/** The published packages, packed with `npm pack` and installed into an empty folder with `npm install`, run. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { root } from './acceptance/build.ts'
import { createControl } from './acceptance/control.ts'
import { settingsOf } from './acceptance/registration.ts'
import type { Settings } from './acceptance/sidecar.ts'
import { couchUrl, freshDb } from './support/couchdb.ts'
import { eventually } from './support/eventually.ts'

const run = promisify(execFile)
const QUIET = ['--no-audit', '--no-fund', '--prefer-offline']
const SHELL = { PATH: process.env.PATH, HOME: process.env.HOME }

/** An empty project with the packages of these folders installed from their tarballs. */
async function install(folders: readonly string[], ...more: string[]): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'packed-'))
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  const pack = async (folder: string) => {
    const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', home], { cwd: join(root, folder) })
    const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [{ filename: string }]
    return `./${filename}`
  }
  const tarballs: string[] = []
  for (const folder of folders) tarballs.push(await pack(folder))
  await writeFile(join(home, 'package.json'), '{ "private": true, "type": "module" }')
  await run('npm', ['install', ...QUIET, ...tarballs, ...more], { cwd: home })
  return home
}

/** Starts the installed sidecar, waits until it is up, and stops it. Resolves with its output. */
async function runInstalled(home: string, settings: Settings): Promise<string> {
  const child = spawn(process.execPath, ['node_modules/couchdb-sidecar/dist/sidecar/main.js', 'start'], {
    ...{ cwd: home, env: { ...SHELL, ...settings, SIDECAR_PORT: '0' } },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const gone = once(child, 'close')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await gone
  })
  let printed = ''
  child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  const url = await eventually(() => /"url":"([^"]+)"/.exec(printed)![1]!)
  await eventually(async () => expect((await fetch(`${url}/_up`)).status).toBe(200))
  child.kill('SIGTERM')
  expect((await gone)[0]).toBe(0)
  return printed
}

const timeout = 300_000

test('the sidecar installs no embedded server, reports that, and starts beside a CouchDB', { timeout }, async () => {
  const home = await install(['.'])
  expect(await readdir(join(home, 'node_modules'))).not.toContain('express-pouchdb')
  const settings = { ...settingsOf(await createControl()), SMTP_URL: 'smtp://127.0.0.1:9' }
  const { stdout } = await run('npx', ['couchdb-sidecar', 'status'], { cwd: home, env: { ...SHELL, ...settings } })
  expect(stdout).toContain('workers')
  await runInstalled(home, settings)
  const alone = run('npx', ['couchdb-sidecar', 'start'], { cwd: home, env: SHELL })
  const ended = (await alone.catch((thrown: unknown) => thrown)) as { code: number; stderr: string }
  expect(ended.code).toBe(2)
  expect(ended.stderr).toContain('npm install couchdb-sidecar-embedded')
})

test('the sidecar runs with the embedded server package alone', { timeout }, async () => {
  const home = await install(['.', 'embedded'])
  expect(await runInstalled(home, {})).toContain('embedded mail catcher')
})

test('the client loads beside an installed PouchDB', { timeout }, async () => {
  const home = await install(['client'], 'pouchdb@9')
  const script = `
    import PouchDB from 'pouchdb'
    import * as client from 'couchdb-sidecar-client'
    console.log(typeof PouchDB, Object.keys(client).sort().join())`
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', script], { cwd: home })
  expect(stdout).toMatch(/^function \w+/)
})

test('a new project runs its tests and checks with the installed packages', { timeout }, async () => {
  const home = await install(['.', 'embedded'], 'tsx', 'typescript', '@types/node@20')
  await run('npx', ['couchdb-sidecar', 'init', 'my-app'], { cwd: home, env: SHELL })
  const app = { cwd: join(home, 'my-app'), env: SHELL }
  await run('npx', ['tsc'], app)
  const { stdout } = await run('npm', ['test'], app)
  expect(stdout).toMatch(/pass 3\n/)
})

test(
  'the package types check the design documents of the docs page, and the sidecar deploys them',
  { timeout },
  async () => {
    const home = await install(['.'], 'typescript', 'dayjs')
    const page = await readFile(join(root, 'docs/design-documents.md'), 'utf8')
    for (const [, path, text] of page.matchAll(/`(ddocs\/\S+)`[^\n]*:(?: [^\n]*)?\n+```\w+\n(.*?)```/gs)) {
      await mkdir(dirname(join(home, path!)), { recursive: true })
      await writeFile(join(home, path!), text!)
    }
    await run('npx', ['tsc', '-p', 'ddocs/shop'], { cwd: home })
    const db = await freshDb('shop')
    const env = { ...SHELL, COUCHDB_URL: couchUrl() }
    const deploy = ['couchdb-sidecar', 'deploy', '--ddocs', 'ddocs/shop', '--database', db.name]
    const { stdout } = await run('npx', deploy, { cwd: home, env })
    expect(stdout).toContain('_design/blog created')
    const careless = 'export default (): void => console.log(emit.name)'
    await writeFile(join(home, 'ddocs/shop/blog/views/by_month/map.ts'), careless)
    await expect(run('npx', ['tsc', '-p', 'ddocs/shop'], { cwd: home })).rejects.toMatchObject({
      stdout: expect.stringContaining("Cannot find name 'console'") as string,
    })
  },
)
