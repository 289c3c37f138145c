/** Runs the program like `main.ts` but in the tests' process: same arguments, settings and output. */
import pino from 'pino'
import { onTestFinished } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { run } from '../../sidecar/cli/program.ts'
import { createLines, untilUp, type Ended, type Settings, type Sidecar } from './sidecar.ts'

/** Like `launchSidecar`. */
export async function launchInProcess(settings: Settings): Promise<Sidecar> {
  const stopping = new AbortController()
  const lines = createLines()
  const terminal = terminalFor({ SIDECAR_PORT: '0', ...settings }, stopping.signal, lines.add)
  const running = run(terminal, packageJson.version, ['start'])
  let ended = false
  void running.then(() => (ended = true))
  const stop = async () => {
    stopping.abort(new Error('stopped by the test'))
    return running
  }
  const end = async () => void (await stop())
  try {
    const url = await untilUp(lines, () => ended)
    return { url, log: lines.log, output: lines.output, stop, end }
  } catch (thrown) {
    await end()
    throw thrown
  }
}

/** The progress note of a command that takes longer than 5 s. No test expects it: the machine may be busy. */
const PROGRESS = /; waiting \(Ctrl-C ends\)$|\([\d,]+ of [\d,]+ databases\)$|^index of .* changes/

/** Like `runCommand`, without the notes on progress. Ends with the test at the latest. */
export async function runInProcess(args: readonly string[], settings: Settings = {}): Promise<Ended> {
  const said = { stdout: '', stderr: '' }
  const stopping = new AbortController()
  onTestFinished(() => stopping.abort(new Error('the test is over')))
  const terminal = {
    ...terminalFor(settings, stopping.signal, (line) => void (said.stdout += `${line}\n`)),
    note: (line: string) => void (said.stderr += PROGRESS.test(line) ? '' : `${line}\n`),
  }
  return { code: await run(terminal, packageJson.version, args), ...said }
}

/** An environment without a terminal and without an `.env` file. */
const terminalFor = (env: Settings, signal: AbortSignal, say: (line: string) => void) => ({
  env,
  envFile: '/dev/null',
  print: say,
  note: say,
  isTTY: false,
  createLog: (level: string) => pino({ level }, { write: (line: string) => say(line.trimEnd()) }),
  signal,
})
