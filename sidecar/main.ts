#!/usr/bin/env node
/** The edge of the process: signals, the terminal, and the exit code. */
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { clearLine, cursorTo } from 'node:readline'
import type { destination, Logger } from 'pino'
import { printable } from './core/visible.ts'
import { shownJson } from './cli/printable.ts'
import { run } from './cli/program.ts'
import { watchSuddenEnds } from './cli/sudden-end.ts'
import { SidecarError } from './core/errors.ts'
import { keepHeapSmall } from './core/heap.ts'

/** Maximum wait for the reader of the log at the end, milliseconds. */
const LOG_MS = 2000
const { version } = createRequire(import.meta.url)('couchdb-sidecar/package.json') as { version: string }
keepHeapSmall()
const stopping = new AbortController()
let log: Logger | undefined
/** Where the log goes; undefined on a terminal. */
let output: ReturnType<typeof destination> | undefined
const sudden = watchSuddenEnds({ stopping, log: () => log, note: (text) => void console.error(printable(text)) })
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, () => {
    if (stopping.signal.aborted) sudden.exit(1)
    stopping.abort(new SidecarError('stopped', `stopped by ${name}`))
  })
}
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error // EPIPE: the reader has closed the pipe, but the command still finishes
  })
}
const isTTY = process.stdout.isTTY
const terminal = {
  env: process.env,
  envFile: '.env',
  print: (text: string) => console.log(text),
  note: (text: string) => console.error(text),
  redraw: process.stderr.isTTY ? redraw : undefined,
  isTTY,
  async createLog(level: string, show?: (line: string) => void) {
    const { pino } = await import('pino') // loaded on use: other commands do not need it
    if (show) return (log = pino({ level }, { write: show }))
    if (isTTY) return (log = pino({ level, hooks: { streamWrite: shownJson }, transport: { target: 'pino-pretty' } }))
    return (log = pino({ level, hooks: { streamWrite: printable } }, (output = pino.destination(1))))
  },
  signal: stopping.signal,
}

const code = await run(terminal, version, process.argv.slice(2))
await logWritten()
sudden.exit(code) // exit now: a handler may have left timers

/** Waits for the line that is being written. At an exit, the later lines would come before it. */
async function logWritten(): Promise<void> {
  const written = output && once(output, 'drain', { signal: AbortSignal.timeout(LOG_MS) })
  output?.write('') // causes `drain`, also if nothing is being written
  await written?.catch(() => undefined) // the reader of the log is slow, or gone
}

/** Prints a line over the last one, cut to the terminal's width: a wrapped line cannot be cleared. */
function redraw(line: string): void {
  cursorTo(process.stderr, 0)
  clearLine(process.stderr, 1)
  process.stderr.write(line.slice(0, (process.stderr.columns || 80) - 1))
}
