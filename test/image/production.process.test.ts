/** The part of node_modules that the image contains. */
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { root } from '../acceptance/build.ts'
import { notInProduction, production } from './packages.ts'

test('the production packages need no embedded and no development package', () => {
  expect(notInProduction.filter((name) => production.has(name))).toEqual([])
})

test('the production packages include the optional binaries of esbuild', () => {
  expect([...production]).toEqual(expect.arrayContaining(['@esbuild/linux-x64', '@esbuild/linux-arm64']))
})

test('every module loads with the production packages, and a sidecar without settings names the missing ones', async () => {
  const home = mkdtempSync(join(tmpdir(), 'couchdb-sidecar-image-'))
  onTestFinished(() => rmSync(home, { recursive: true }))
  cpSync(join(root, 'package.json'), join(home, 'package.json'))
  cpSync(join(root, 'dist'), join(home, 'dist'), { recursive: true })
  for (const name of production) {
    const [installed, link] = [join(root, 'node_modules', name), join(home, 'node_modules', name)]
    if (!existsSync(installed)) continue // of another platform, or nested in another package
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(installed, link)
  }
  const modules = readdirSync(join(home, 'dist'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.js') && file !== 'sidecar/main.js')
    .map((file) => `await import('./dist/${file}')`)
  expect(modules.length).toBeGreaterThan(100)
  expect(await run(home, '--input-type=module', '--eval', modules.join('\n'))).toMatchObject({ code: 0, stderr: '' })
  const started = await run(home, 'dist/sidecar/main.js', 'start')
  expect(started).toMatchObject({ code: 2, stderr: expect.stringMatching(/^couchdb-sidecar: COUCHDB_URL: /) as string })
})

const run = (cwd: string, ...args: string[]) =>
  new Promise<{ code: unknown; stderr: string }>((resolve) => {
    execFile(process.execPath, args, { cwd, env: { PATH: process.env.PATH } }, (error, _, stderr) =>
      resolve({ code: error?.code ?? 0, stderr }),
    )
  })
