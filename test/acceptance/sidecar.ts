/** What tests see of a running sidecar, however it runs. */
import { setTimeout as delay } from 'node:timers/promises'
import { onTestFinished } from 'vitest'

/** As `SIDECAR_PORT`, and so on; nothing else is in the environment. */
export type Settings = Readonly<Record<string, string>>

export interface LogLine {
  /** As pino counts: 30 is `info`, 40 `warn`, 50 `error`. */
  readonly level: number
  readonly msg: string
  readonly [field: string]: unknown
}

export interface Sidecar {
  /** Where its HTTP is. */
  readonly url: string
  /** What it has logged so far. */
  readonly log: readonly LogLine[]
  /** All that it has printed so far. */
  output(): string
  /** As by SIGTERM. Resolves with the exit code; null if it had to be killed. */
  stop(): Promise<number | null>
  /** The quickest way. Resolves when it is gone. */
  end(): Promise<void>
}

export interface Ended {
  /** 0 fine, 1 failed, 2 wrong usage or settings. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export async function endWithTest<T extends Sidecar>(launching: Promise<T>): Promise<T> {
  const sidecar = await launching
  onTestFinished(() => sidecar.end())
  return sidecar
}

/** What a sidecar prints, line by line, and which of it are lines of its log. */
export interface Lines {
  readonly log: readonly LogLine[]
  readonly output: () => string
  readonly add: (line: string) => void
}

export function createLines(): Lines {
  const printed: string[] = []
  const log: LogLine[] = []
  return {
    log,
    output: () => printed.join('\n'),
    add(line) {
      printed.push(line)
      if (line.startsWith('{"level"')) log.push(JSON.parse(line) as LogLine)
    },
  }
}

const START_MS = 60_000

/** Resolves with its address. */
export async function untilUp({ log, output }: Lines, hasEnded: () => boolean): Promise<string> {
  const deadline = performance.now() + START_MS
  for (;;) {
    if (hasEnded()) throw new Error(`it ended instead of being up: ${output()}`)
    const url = log.find(({ msg }) => msg === 'listening')?.url
    if (typeof url === 'string' && (await isUp(url))) return url
    if (performance.now() > deadline) throw new Error(`it is not up: ${output()}`)
    await delay(20)
  }
}

const isUp = (url: string): Promise<boolean> =>
  fetch(`${url}/_up`).then(
    ({ ok }) => ok,
    () => false,
  )
