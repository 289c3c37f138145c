/** A running sidecar as tests see it, in process, as a process or as a container. */
import { setTimeout as delay } from 'node:timers/promises'
import { onTestFinished } from 'vitest'

/** Settings such as `SIDECAR_PORT`; the environment contains nothing else. */
export type Settings = Readonly<Record<string, string>>

export interface LogLine {
  /** The level in pino's numbers: 30 is `info`, 40 `warn`, 50 `error`. */
  readonly level: number
  readonly msg: string
  readonly [field: string]: unknown
}

export interface Sidecar {
  /** The URL of its HTTP server. */
  readonly url: string
  /** Its log lines so far. */
  readonly log: readonly LogLine[]
  /** Its complete output so far. */
  output(): string
  /** Stops like SIGTERM. Resolves with the exit code; null if it had to be killed. */
  stop(): Promise<number | null>
  /** Ends it in the quickest way. Resolves when it has ended. */
  end(): Promise<void>
}

export interface Ended {
  /** 0: success, 1: failure, 2: wrong usage or settings. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export async function endWithTest<T extends Sidecar>(launching: Promise<T>): Promise<T> {
  const sidecar = await launching
  onTestFinished(() => sidecar.end())
  return sidecar
}

/** The output of a sidecar by line, with the log lines parsed. */
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

const START_MS = 90_000

/** Resolves with the sidecar's URL. */
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
