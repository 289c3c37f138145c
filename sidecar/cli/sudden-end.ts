/** Handles a sudden end: a handler calls `process.exit`, or leaves a timer that throws an uncaught exception. */
import { inspect } from 'node:util'
import type { Logger } from 'pino'
import { SidecarError } from '../core/errors.ts'
import { cut, failureOf, stackOf } from '../core/failure.ts'
import { currentDocument } from '../docstate/current-document.ts'

export interface SuddenEndOptions {
  readonly stopping: AbortController
  /** Undefined until a log exists. */
  readonly log: () => Logger | undefined
  /** Synchronous: the event `exit` allows no other output. */
  readonly note: (text: string) => void
}

export interface SuddenEnd {
  /** Ends the process with this code, but not with 0 after an uncaught exception. */
  exit(code: number): never
}

const MAX_TEXT = 5000

/**
 * Lets an uncaught exception of a handler end the process in good order: running handlers finish, and their outcomes
 * are saved. `process.exit` in a handler always ends with an error. Both are logged with the document.
 */
export function watchSuddenEnds({ stopping, log, note }: SuddenEndOptions): SuddenEnd {
  let isEnding = false
  let isFailed = false

  process.on('uncaughtException', (thrown: unknown) => {
    isFailed = true
    const of = currentDocument()
    if (of && log()) {
      const { code, reason } = failureOf(thrown)
      const err = { message: reason, stack: stackOf(thrown) ?? reason }
      log()!.fatal({ ...of, code, err }, 'uncaught exception in code that a handler left running: the sidecar stops')
    } else note(cut(inspect(thrown), MAX_TEXT))
    if (!of) process.exit(1)
    stopping.abort(new SidecarError('stopped', 'stopped by an uncaught exception in code that a handler left running'))
  })
  process.on('exit', (code) => {
    if (isEnding || isFailed) return
    process.exitCode = code || 1
    const of = currentDocument()
    const what = of
      ? `the handler of ${of.type} in ${of.state}, with document ${of.id} of ${of.database}, has called process.exit(${code})`
      : `the process was ended with code ${code} before its command was done`
    note(`couchdb-sidecar: ${what}. What ran is left as by kill -9.`)
  })

  return {
    exit(code) {
      isEnding = true
      process.exit(isFailed ? code || 1 : code)
    },
  }
}
