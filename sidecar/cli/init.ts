import { cp, mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ConfigError } from '../core/errors.ts'
import { failureOf } from '../core/failure.ts'
import type { Terminal } from './terminal.ts'

const root = dirname(createRequire(import.meta.url).resolve('couchdb-sidecar/package.json'))
const template = join(root, 'templates/app')
/** npm leaves files with these names out of a package, or changes them. */
const RENAMED = { env: '.env', gitignore: '.gitignore' } as const
const NAME = 'my-app'
const VERSION = /"(couchdb-sidecar(?:-embedded)?)": "[^"]*"/g

/** Writes a small project: a state machine, two handlers, a test. */
export async function init(terminal: Pick<Terminal, 'print'>, path: string, version: string): Promise<void> {
  const folder = resolve(path)
  const name = basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
  await makeFolder(folder).catch((thrown: unknown) => {
    throw new ConfigError([`init: expected a folder that can be made, got ${folder}: ${failureOf(thrown).reason}`])
  })
  const entries = await readdir(folder)
  if (entries.length > 0) {
    throw new ConfigError([`init: expected a new or empty folder, got ${folder}, in which there is ${entries[0]}`])
  }
  // In a checkout, the project uses the checkout: the registry may not have this version.
  const isCheckout = await stat(join(root, 'embedded/package.json')).then(
    () => true,
    () => false,
  )
  const versionOf = (name: string) =>
    isCheckout ? pathToFileURL(name === 'couchdb-sidecar' ? root : join(root, 'embedded')).href : `^${version}`
  await cp(template, folder, { recursive: true })
  for (const [from, to] of Object.entries(RENAMED)) await rename(join(folder, from), join(folder, to))
  for (const file of ['package.json', 'README.md']) {
    const text = await readFile(join(folder, file), 'utf8')
    await writeFile(
      join(folder, file),
      text.replaceAll(NAME, name).replaceAll(VERSION, (_, name: string) => `"${name}": "${versionOf(name)}"`),
    )
  }
  terminal.print(
    [
      `${folder} has a state machine of orders, two handlers and a test.`,
      '',
      `  cd ${path}`,
      '  npm install',
      '  npm run dev',
      '',
    ].join('\n'),
  )
}

/** Creates a folder and its parents. Node's own `recursive` never ends if a folder accepts no others, as in /proc. */
async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder)
  } catch (thrown) {
    const above = dirname(folder)
    const isFolder = (path: string) =>
      stat(path).then(
        (stats) => stats.isDirectory(),
        () => false,
      )
    if (await isFolder(folder)) return
    if ((thrown as NodeJS.ErrnoException).code !== 'ENOENT' || (await isFolder(above))) throw thrown
    await makeFolder(above)
    await mkdir(folder)
  }
}
