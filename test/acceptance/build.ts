/** The shipped program, compiled from the current sources. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export const root = fileURLToPath(new URL('../..', import.meta.url))
export const program = join(root, 'dist', 'sidecar', 'main.js')

/** The global setup of test projects that run the program. Like `npm start`, it compiles sources newer than the build. */
export default async function build(): Promise<void> {
  try {
    await promisify(execFile)(process.execPath, [join(root, 'build-if-stale.js')])
  } catch (thrown) {
    throw new Error(`build-if-stale.js: ${(thrown as { stderr?: string }).stderr}`, { cause: thrown })
  }
}
