/**
 * A process that ends with this one, however this process ends: a shell stands between, whose `read` returns when the
 * pipe to it breaks. It has a directory, to which its output goes, and which goes with it unless it is told to stay.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export interface OwnedProcess {
  /** Of the process itself, not of the shell. */
  readonly pid: number
  /** As by `kill -9`. Fine if it is gone already. Resolves when it is gone. */
  end(directory: 'keep' | 'remove'): Promise<void>
}

const SHELL = `
home=$1 log=$2
shift 2
"$@" >>"$home/$log" 2>&1 </dev/null &
echo $!
read -r keep
kill -9 $! 2>/dev/null
wait $! 2>/dev/null
[ "$keep" ] || rm -rf "$home"`

export interface OwnedProcessOptions {
  readonly command: readonly string[]
  readonly home: string
  /** Name of a file in `home`. */
  readonly log: string
  readonly env: NodeJS.ProcessEnv
}

export async function startOwnedProcess(options: OwnedProcessOptions): Promise<OwnedProcess> {
  const { command, home, log, env } = options
  // Detached: Ctrl-C is for the test runner, which then ends this.
  const shell = spawn('/bin/sh', ['-c', SHELL, 'sh', home, log, ...command], {
    env,
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const gone = once(shell, 'exit')
  const [pid] = (await once(createInterface({ input: shell.stdout }), 'line')) as [string]
  return {
    pid: Number(pid),
    async end(directory) {
      if (!shell.stdin.writableEnded) shell.stdin.end(directory === 'keep' ? 'keep\n' : '')
      await gone
    },
  }
}
