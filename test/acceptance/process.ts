/** The sidecar as a process or container: a test can kill and pause it, and read its exit code. */
import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { launch } from './launch.ts'
import { createLines, endWithTest, untilUp, type Ended, type Settings, type Sidecar } from './sidecar.ts'

export interface SidecarProcess extends Sidecar {
  readonly pid: number
  readonly isAlive: boolean
  /** Kills the process like `kill -9`. Resolves when it has ended. */
  kill(): Promise<void>
}

/** Like `startSidecar`, always as a process. */
export const startProcess = (settings: Settings): Promise<SidecarProcess> => endWithTest(launchProcess(settings))

/** Like `launchSidecar`, always as a process. */
export async function launchProcess(settings: Settings): Promise<SidecarProcess> {
  const { child, kill, ended } = launch(['start'], { SIDECAR_PORT: '0', ...settings })
  const isAlive = () => child.exitCode === null && child.signalCode === null
  const lines = createLines()
  const kept = fileOf(settings.SIDECAR_NAME, child.pid)
  for (const stream of [child.stdout!, child.stderr!]) {
    createInterface({ input: stream }).on('line', lines.add)
    if (kept) stream.pipe(kept, { end: false })
  }
  if (kept) void ended.then(() => kept.end())
  const killed = async () => {
    kill()
    await ended
  }
  try {
    const url = await untilUp(lines, () => !isAlive())
    return {
      url,
      pid: child.pid!,
      get isAlive() {
        return isAlive()
      },
      log: lines.log,
      output: lines.output,
      kill: killed,
      end: killed,
      async stop() {
        child.kill('SIGTERM')
        return ended
      },
    }
  } catch (thrown) {
    await killed()
    throw thrown
  }
}

/** A file in the folder TEST_LOGS that keeps the output for developers. */
const fileOf = (name = 'sidecar', pid: number | undefined) =>
  process.env.TEST_LOGS ? createWriteStream(join(process.env.TEST_LOGS, `${name}-${pid}.log`)) : undefined

/** Like `runCommand`, always as a process. */
export async function runProcess(args: readonly string[], settings: Settings = {}): Promise<Ended> {
  const { child, ended } = launch(args, settings)
  const [stdout, stderr, code] = await Promise.all([text(child.stdout!), text(child.stderr!), ended])
  return { code, stdout, stderr }
}
