/** The sidecar as a process of the compiled program, or as a container: it can be killed, paused, and has an exit code. */
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { launch } from './launch.ts'
import { createLines, endWithTest, untilUp, type Ended, type Settings, type Sidecar } from './sidecar.ts'

export interface SidecarProcess extends Sidecar {
  readonly pid: number
  readonly isAlive: boolean
  /** As by `kill -9`. Resolves when it is gone. */
  kill(): Promise<void>
}

/** As `startSidecar`, always as a process. */
export const startProcess = (settings: Settings): Promise<SidecarProcess> => endWithTest(launchProcess(settings))

/** As `launchSidecar`, always as a process. */
export async function launchProcess(settings: Settings): Promise<SidecarProcess> {
  const { child, kill } = launch(['start'], { SIDECAR_PORT: '0', ...settings })
  const gone = once(child, 'close')
  const isAlive = () => child.exitCode === null && child.signalCode === null
  const lines = createLines()
  const kept = fileOf(settings.SIDECAR_NAME, child.pid)
  for (const stream of [child.stdout!, child.stderr!]) {
    createInterface({ input: stream }).on('line', lines.add)
    if (kept) stream.pipe(kept, { end: false })
  }
  if (kept) void gone.then(() => kept.end())
  const killed = async () => {
    kill()
    await gone
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
        const [code] = (await gone) as [number | null]
        return code
      },
    }
  } catch (thrown) {
    await killed()
    throw thrown
  }
}

/** Where its output is kept, for a person to read: in the folder TEST_LOGS. */
const fileOf = (name = 'sidecar', pid: number | undefined) =>
  process.env.TEST_LOGS ? createWriteStream(join(process.env.TEST_LOGS, `${name}-${pid}.log`)) : undefined

/** As `runCommand`, always as a process. */
export async function runProcess(args: readonly string[], settings: Settings = {}): Promise<Ended> {
  const { child } = launch(args, settings)
  const ended = once(child, 'close') as Promise<[number | null]>
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout!), text(child.stderr!), ended])
  return { code, stdout, stderr }
}
