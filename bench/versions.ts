/** The measured versions: this one and, with `--against <commit>`, another one in turns with it. */
import { execFile } from 'node:child_process'
import { mkdtemp, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import type * as databases from './database.ts'

export interface Version {
  /** Empty for this version. */
  readonly name: string
  readonly folder: string
  /** Creates a database with the design document of this version. */
  readonly fillDatabase: typeof databases.fillDatabase
}

const here = fileURLToPath(new URL('..', import.meta.url))
const run = promisify(execFile)

export const thisVersion = (): Promise<Version> => versionIn(here, '')

/** Checks out the commit beside this version and builds it with the packages that are installed here. */
export async function otherVersion(commit: string): Promise<Version & { remove(): Promise<unknown> }> {
  const folder = join(await mkdtemp(join(tmpdir(), 'sidecar-against-')), 'checkout')
  const git = (...args: string[]) => run('git', args, { cwd: here })
  await git('worktree', 'add', '--detach', folder, commit)
  const remove = () => git('worktree', 'remove', '--force', folder)
  try {
    await symlink(join(here, 'node_modules'), join(folder, 'node_modules'))
    await run('npm', ['run', 'build'], { cwd: folder })
    return { ...(await versionIn(folder, commit)), remove }
  } catch (thrown) {
    await remove()
    throw thrown
  }
}

async function versionIn(folder: string, name: string): Promise<Version> {
  const path = pathToFileURL(join(folder, 'bench/database.ts')).href
  const { fillDatabase } = (await import(path)) as typeof databases
  return { name, folder, fillDatabase }
}
