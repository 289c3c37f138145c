import type { Logger } from 'pino'
import type { Config } from '../config.ts'

/** What the commands need of the world outside. */
export interface Terminal {
  readonly env: NodeJS.ProcessEnv
  /** Path of the `.env` file. One that is not there is no fault. */
  readonly envFile: string
  readonly print: (text: string) => void
  /** What a person wants to know while waiting, beside the answer. */
  readonly note: (text: string) => void
  /** Shows one line in place of the one that it showed before; an empty one takes it away. Only on a terminal. */
  readonly redraw?: ((line: string) => void) | undefined
  readonly isTTY: boolean
  /** @param show shows a line, instead of standard output */
  readonly createLog: (level: Config['logLevel'], show?: (line: string) => void) => Logger | Promise<Logger>
  /** Aborts at the first signal to stop. */
  readonly signal: AbortSignal
}
