/** The program as it is shipped, compiled from the sources as they are now. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export const root = fileURLToPath(new URL('../..', import.meta.url))
export const program = join(root, 'dist', 'sidecar', 'main.js')

/** Before the tests of a project that runs it: compiles unless what is there is newer than every source, as `npm start` does. */
export default async function build(): Promise<void> {
  try {
    await promisify(execFile)(process.execPath, [join(root, 'build-if-stale.js')])
  } catch (thrown) {
    throw new Error(`build-if-stale.js: ${(thrown as { stderr?: string }).stderr}`, { cause: thrown })
  }
}
