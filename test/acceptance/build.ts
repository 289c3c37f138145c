/** The program as it is shipped, compiled from the sources as they are now. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export const root = fileURLToPath(new URL('../..', import.meta.url))
export const program = join(root, 'dist', 'sidecar', 'main.js')

/** Whoever was killed while compiling does not hold up the others for longer. */
const STALE_MS = 60_000

/**
 * Compiles unless what is there is newer than every source, as `npm start` does. Test files run side by side in
 * processes of their own: one compiles, the others wait for it.
 */
export async function build(): Promise<void> {
  const release = await lock(join(tmpdir(), `couchdb-sidecar-${createHash('md5').update(root).digest('hex')}`))
  try {
    await promisify(execFile)(process.execPath, [join(root, 'build-if-stale.js')])
  } catch (thrown) {
    throw new Error(`build-if-stale.js: ${(thrown as { stderr?: string }).stderr}`, { cause: thrown })
  } finally {
    await release()
  }
}

/** 0 for a file that is not there. */
const changedAt = (path: string): Promise<number> =>
  stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  )

/** A folder that only one process can make. */
async function lock(folder: string): Promise<() => Promise<void>> {
  for (;;) {
    try {
      await mkdir(folder)
      return () => rm(folder, { recursive: true, force: true })
    } catch (taken) {
      if ((taken as NodeJS.ErrnoException).code !== 'EEXIST') throw taken
      const since = await changedAt(folder)
      if (since > 0 && Date.now() - since > STALE_MS) await rm(folder, { recursive: true, force: true })
      await delay(100)
    }
  }
}
