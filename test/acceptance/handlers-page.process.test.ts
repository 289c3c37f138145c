/** The files in docs/handlers.md form a project, which is compiled, tested and loaded. */
import { execFile } from 'node:child_process'
import { mkdir, readFile, symlink, writeFile, rm, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { loadHandlers } from '../../sidecar/cli/load-handlers.ts'
import { root } from './build.ts'

const FILE = /^```ts\n\/\/ ((?:handlers|test)\/\S+)\n([^]*?)^```$/gm

/** A project made by `init`, with these files in place of its own. */
async function createProject(files: readonly (readonly [path: string, text: string])[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'handlers-page-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const packageJson = { name: 'shop', private: true, type: 'module' }
  const tsconfig = await readFile(join(root, 'templates/app/tsconfig.json'), 'utf8')
  for (const [path, text] of [
    ...files,
    ['package.json', JSON.stringify(packageJson)] as const,
    ['tsconfig.json', tsconfig] as const,
  ]) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text)
  }
  await mkdir(join(folder, 'node_modules'))
  const link = (name: string, to: string) => symlink(to, join(folder, 'node_modules', name))
  await link('couchdb-sidecar', root)
  await link('couchdb-sidecar-embedded', join(root, 'embedded'))
  for (const name of ['typescript', 'tsx', '@types']) await link(name, join(root, 'node_modules', name))
  return folder
}

test('the files of the page compile, their tests pass, and a sidecar loads them', async () => {
  const page = await readFile(join(root, 'docs/handlers.md'), 'utf8')
  const files = [...page.matchAll(FILE)].map(([, path, text]) => [path!, text!] as const)
  const tests = files.map(([path]) => path).filter((path) => path.startsWith('test/'))
  const handlers = files.filter(([path]) => path.startsWith('handlers/')).map(([path]) => path)
  expect(handlers).toHaveLength(8)
  const folder = await createProject(files)
  const { NODE_OPTIONS: _, NODE_V8_COVERAGE: __, COUCHDB_URL: ___, ...env } = process.env
  const inside = (...args: string[]) =>
    promisify(execFile)(process.execPath, args, { cwd: folder, env }).catch((thrown: Error & { stdout?: string }) => {
      throw new Error(thrown.stdout ?? thrown.message)
    })
  await inside('node_modules/typescript/bin/tsc')
  const tested = await inside('--import', 'tsx', '--test', ...tests)
  expect(tested.stdout).toMatch(/pass 12\n/)
  for (const path of handlers) await loadHandlers([join(folder, path)])
})
