/**
 * A process that ends with this one, in any case: its parent is a shell whose `read` returns when the pipe to it
 * breaks. It has a directory for its output, which is removed with it unless `end` keeps it.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export interface OwnedProcess {
  /** The id of the process itself, not of the shell. */
  readonly pid: number
  /** Kills it as `kill -9` does; an ended process is fine. Resolves when it has ended. */
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
  /** The name of a file in `home`. */
  readonly log: string
  readonly env: NodeJS.ProcessEnv
}

export async function startOwnedProcess(options: OwnedProcessOptions): Promise<OwnedProcess> {
  const { command, home, log, env } = options
  // Detached: Ctrl-C reaches only the test runner, which then ends this process.
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
