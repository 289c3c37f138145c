/**
 * The sidecar as people run it: a process of the compiled program that knows nothing but its settings, or a container of
 * the image that `TEST_IMAGE` names. What the tests learn of it, it has written to its output, to CouchDB, or into a mail.
 */
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { launch } from './launch.ts'

/** As `SIDECAR_PORT`, and so on; nothing else is in the environment. */
export type Settings = Readonly<Record<string, string>>

export interface LogLine {
  /** As pino counts: 30 is `info`, 40 `warn`, 50 `error`. */
  readonly level: number
  readonly msg: string
  readonly [field: string]: unknown
}

export interface SidecarProcess {
  /** Where its HTTP is. */
  readonly url: string
  readonly pid: number
  /** What it has logged so far. */
  readonly log: readonly LogLine[]
  /** All that it has printed so far. */
  output(): string
  /** As by `kill -9`. Resolves when it is gone. */
  kill(): Promise<void>
  /** SIGTERM. Resolves with the exit code; null if it had to be killed. */
  stop(): Promise<number | null>
}

const START_MS = 60_000

/** Starts it, and waits until it is up. It ends with the test. */
export async function startSidecar(settings: Settings): Promise<SidecarProcess> {
  const sidecar = await launchSidecar(settings)
  onTestFinished(() => sidecar.kill())
  return sidecar
}

/** As `startSidecar`, for all tests of a file: whoever launches it, ends it. */
export async function launchSidecar(settings: Settings): Promise<SidecarProcess> {
  const { child, kill } = launch(['start'], { SIDECAR_PORT: '0', ...settings })
  const printed: string[] = []
  const log: LogLine[] = []
  const gone = once(child, 'close')
  createInterface({ input: child.stderr! }).on('line', (line) => printed.push(line))
  createInterface({ input: child.stdout! }).on('line', (line) => {
    printed.push(line)
    if (line.startsWith('{"level"')) log.push(JSON.parse(line) as LogLine)
  })
  const output = () => printed.join('\n')
  const killed = async () => {
    kill()
    await gone
  }
  try {
    const url = await untilUp(log, () => {
      if (child.exitCode !== null) throw new Error(`it ended instead of being up: ${output()}`)
    })
    return {
      url,
      pid: child.pid!,
      log,
      output,
      kill: killed,
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

/** Resolves with its address. */
async function untilUp(log: readonly LogLine[], expectRunning: () => void): Promise<string> {
  const deadline = performance.now() + START_MS
  for (;;) {
    expectRunning()
    const url = log.find(({ msg }) => msg === 'listening')?.url
    if (typeof url === 'string' && (await isUp(url))) return url
    if (performance.now() > deadline) throw new Error(`it is not up: ${JSON.stringify(log)}`)
    await delay(20)
  }
}

const isUp = (url: string): Promise<boolean> =>
  fetch(`${url}/_up`).then(
    ({ ok }) => ok,
    () => false,
  )

export interface Ended {
  /** 0 fine, 1 failed, 2 wrong usage or settings. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs one command to its end. */
export async function runCommand(args: readonly string[], settings: Settings = {}): Promise<Ended> {
  const { child } = launch(args, settings)
  const ended = once(child, 'close') as Promise<[number | null]>
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout!), text(child.stderr!), ended])
  return { code, stdout, stderr }
}
