import type { Logger } from 'pino'
import type { Config } from '../config.ts'

/** The environment of the commands. */
export interface Terminal {
  readonly env: NodeJS.ProcessEnv
  /** Path of the `.env` file. A missing file is no fault. */
  readonly envFile: string
  readonly print: (text: string) => void
  /** Prints a message for a waiting person, apart from the command's output. */
  readonly note: (text: string) => void
  /** Replaces the line that it printed before; an empty text clears the line. Only on a terminal. */
  readonly redraw?: ((line: string) => void) | undefined
  readonly isTTY: boolean
  /** @param show receives each line, instead of standard output */
  readonly createLog: (level: Config['logLevel'], show?: (line: string) => void) => Logger | Promise<Logger>
  /** Aborts at the first signal to stop. */
  readonly signal: AbortSignal
}
