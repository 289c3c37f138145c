#!/usr/bin/env node
/** The edge of the process: signals, the terminal, and the exit code. 0 fine, 1 failed, 2 wrong usage or settings. */
import { createRequire } from 'node:module'
import { clearLine, cursorTo } from 'node:readline'
import { CommanderError } from 'commander'
import pino from 'pino'
import { createProgram } from './cli/program.ts'
import { ConfigError, SidecarError } from './core/errors.ts'
import { keepHeapSmall } from './core/heap.ts'

const { version } = createRequire(import.meta.url)('couchdb-sidecar/package.json') as { version: string }
keepHeapSmall()
const stopping = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, () => {
    if (stopping.signal.aborted) process.exit(1)
    stopping.abort(new SidecarError('stopped', `stopped by ${name}`))
  })
}
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error // else whoever read it has read enough; what is begun is done all the same
  })
}
const isTTY = process.stdout.isTTY
const terminal = {
  env: process.env,
  print: (text: string) => console.log(text),
  note: (text: string) => console.error(text),
  redraw: process.stderr.isTTY ? redraw : undefined,
  isTTY,
  createLog: (level: string) => pino({ level, ...(isTTY && { transport: { target: 'pino-pretty' } }) }),
  signal: stopping.signal,
}

try {
  await createProgram(terminal, version).parseAsync()
  process.exit(0) // what a handler has left running does not keep the process
} catch (thrown) {
  process.exit(exitCodeOf(thrown))
}

function exitCodeOf(thrown: unknown): number {
  if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2
  if (thrown instanceof ConfigError) {
    console.error(thrown.faults.map((fault) => `couchdb-sidecar: ${fault}`).join('\n'))
    return 2
  }
  if (thrown instanceof SidecarError) console.error(`couchdb-sidecar: ${thrown.message}`)
  else console.error(thrown)
  return 1
}

/** Cut to the width of the terminal: a line that wraps cannot be taken away. */
function redraw(line: string): void {
  cursorTo(process.stderr, 0)
  clearLine(process.stderr, 1)
  process.stderr.write(line.slice(0, (process.stderr.columns || 80) - 1))
}
