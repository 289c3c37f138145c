/** A new project, and `dev` while its files change: the first experience of a user. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { root } from './build.ts'
import { runProcess } from './process.ts'

const MAIN = join(root, 'dist/sidecar/main.js')

/** The result of `npm install`, without the minutes that it takes. */
async function createProject(): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'dev-'))
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  const folder = join(home, 'My Shop')
  // `init` never runs in a container: this test uses a process.
  expect(await promisify(execFile)(process.execPath, [MAIN, 'init', folder])).toMatchObject({ stderr: '' })
  await mkdir(join(folder, 'node_modules'))
  const link = (name: string, to: string) => symlink(to, join(folder, 'node_modules', name))
  await Promise.all([link('couchdb-sidecar', root), link('couchdb-sidecar-embedded', join(root, 'embedded'))])
  for (const name of ['typescript', 'tsx', '@types']) await link(name, join(root, 'node_modules', name))
  return folder
}

/** Runs `dev` in this folder; `said` waits for output since its last call. */
function startDev(folder: string) {
  const settings = { SIDECAR_PORT: '0', PATH: process.env.PATH }
  const child = spawn(process.execPath, [MAIN, 'dev'], {
    cwd: folder,
    env: settings,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const gone = once(child, 'close')
  onTestFinished(async () => {
    child.kill('SIGTERM')
    await gone
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
  let read = 0
  return async (...expected: (string | RegExp)[]): Promise<string> =>
    eventually(() => {
      const news = text.slice(read)
      for (const one of expected) expect(news).toMatch(one)
      read = text.length
      return news
    })
}

test('a new project runs, passes its tests, and reloads when a file is saved', async () => {
  const folder = await createProject()
  expect((await readdir(folder)).toSorted()).toEqual([
    '.env',
    '.gitignore',
    'README.md',
    'handlers',
    'node_modules',
    'order.json',
    'package.json',
    'test',
    'tsconfig.json',
  ])
  expect(JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))).toMatchObject({ name: 'my-shop' })
  const again = await runProcess(['init', folder])
  expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('expected a new or empty folder') as string })

  const { NODE_OPTIONS: _, NODE_V8_COVERAGE: __, ...env } = process.env
  const inside = (...args: string[]) => promisify(execFile)(process.execPath, args, { cwd: folder, env })
  await inside('node_modules/typescript/bin/tsc')
  const tested = await inside('--import', 'tsx', '--test', 'test/orders.test.ts')
  expect(tested.stdout).toMatch(/pass 3\n/)

  const said = startDev(folder)
  const banner = await said('When you save a file, the handlers are loaded again')
  const [, url] = /curl -X POST (\S+) .* -d @order\.json/.exec(banner)!
  const write = async () => {
    const body = await readFile(join(folder, 'order.json'), 'utf8')
    const { origin, username, password, pathname } = new URL(url!)
    const authorization = `Basic ${btoa(`${username}:${password}`)}`
    await fetch(origin + pathname, {
      method: 'POST',
      body,
      headers: { authorization, 'content-type': 'application/json' },
    })
  }
  await write()
  await said(/✓ shop\/\S+ {2}order new → priced/, /✓ shop\/\S+ {2}order priced → confirmed/)

  const file = join(folder, 'handlers/orders.ts')
  const good = await readFile(file, 'utf8')
  const save = (from: string, to: string) => writeFile(file, good.replace(from, to))
  await save('const total =', 'const total ==')
  await said(/orders\.ts:24:16: ERROR: Expected ";" but found "=="/, 'What was loaded before goes on.')
  await save("from 'couchdb-sidecar'", "from 'couchdb-sidecar'\nimport slug from 'no-such'\nconsole.log(slug)")
  await said('it imports no-such, which is not installed: run "npm install no-such"')
  await save("'order', 'new'", "'order', 'nwe'")
  await said(/the machine of order declares as safe: new \(handlers\/orders\.ts:22:11\)/)
  await save('(control) => {', "(control) => {\n  throw new Error('while registering')")
  await said('SIDECAR_HANDLERS: handlers/orders.ts: while registering (handlers/orders.ts:21:9)')
  await save("timeout: '30s'", "timeout: '30'")
  await said(/timeout: expected a time such as 90s, 30m or 24h, got '30' \(handlers\/orders\.ts:\d+:\d+\)/)
  await write()
  await said(/order new → priced/, /order priced → confirmed/) // by the old handlers

  await save("state: 'priced', total", "state: 'prised', total")
  await said('loaded again', /types:\n {2}handlers\/orders\.ts\(22,32\): error TS2345/)
  await write()
  await said(/✗ shop\/\S+ {2}order new .*bad_result: the machine of order has no transition from new to prised/)
  await save("next: { priced: 'sidecar' } }", "next: { priced: 'sidecar', dear: 'sidecar' } },\n    dear: {}")
  await said('loaded again')
  await save('const total =', "if (order.email) throw new Error('of mine')\n    const total =")
  await said('loaded again')
  await write()
  await said(/✗ shop\/\S+ {2}order new .*try 1 of 20 failed.*of mine {2}handlers\/orders\.ts:24:\d+/)
})

test('dev without handlers prints what to do', async () => {
  const ended = await runProcess(['dev'], { SIDECAR_HANDLERS: '' })
  expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining('couchdb-sidecar init my-app') as string })
})
