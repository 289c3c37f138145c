import pino from 'pino'
import { onTestFinished } from 'vitest'
import { run, type ExitCode } from '../../sidecar/cli/run.ts'

export interface Said {
  readonly code: ExitCode
  readonly stdout: string
  readonly stderr: string
}

/** A command as `main.ts` runs it, in this process, with these settings and no `.env` file. */
export async function runInProcess(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Said> {
  const said = { stdout: '', stderr: '' }
  const ending = new AbortController()
  onTestFinished(() => ending.abort(new Error('the test is over')))
  const terminal = {
    env,
    envFile: '/nowhere/.env',
    print: (text: string) => void (said.stdout += `${text}\n`),
    note: (text: string) => void (said.stderr += `${text}\n`),
    isTTY: false,
    createLog: () => pino({ level: 'silent' }),
    signal: ending.signal,
  }
  return { code: await run(terminal, '1.2.3', args), ...said }
}
