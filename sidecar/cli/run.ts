import { inspect } from 'node:util'
import { CommanderError } from 'commander'
import { ConfigError, SidecarError } from '../core/errors.ts'
import { withPrintable } from './printable.ts'
import { createProgram } from './program.ts'
import type { Terminal } from './terminal.ts'

/** 0 fine, 1 failed, 2 wrong usage or settings. */
export type ExitCode = 0 | 1 | 2

/** Runs one command to its end, and says on the terminal what went wrong. `args` are those after the program's name. */
export async function run(given: Terminal, version: string, args: readonly string[]): Promise<ExitCode> {
  const terminal = withPrintable(given)
  try {
    await createProgram(terminal, version).parseAsync(args, { from: 'user' })
    return 0
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2 // it has said so itself
    for (const line of linesOf(thrown)) terminal.note(line)
    return thrown instanceof ConfigError ? 2 : 1
  }
}

function linesOf(thrown: unknown): string[] {
  if (thrown instanceof ConfigError) return thrown.faults.map((fault) => `couchdb-sidecar: ${fault}`)
  return [thrown instanceof SidecarError ? `couchdb-sidecar: ${thrown.message}` : inspect(thrown)]
}
