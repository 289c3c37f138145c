/** The sidecar as a process of the compiled program, or as a container: it can be killed, paused, and has an exit code. */
import { once } from 'node:events'
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
  for (const stream of [child.stdout!, child.stderr!]) createInterface({ input: stream }).on('line', lines.add)
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

/** As `runCommand`, always as a process. */
export async function runProcess(args: readonly string[], settings: Settings = {}): Promise<Ended> {
  const { child } = launch(args, settings)
  const ended = once(child, 'close') as Promise<[number | null]>
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout!), text(child.stderr!), ended])
  return { code, stdout, stderr }
}
