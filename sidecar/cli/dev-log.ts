import { placeIn } from '../core/call-site.ts'
import { oneLine } from '../core/visible.ts'
import type { Terminal } from './terminal.ts'

interface Line {
  readonly level: number
  readonly time: number
  readonly msg: string
  readonly db?: string
  readonly doc?: string
  readonly type?: string
  readonly state?: string
  readonly next?: string
  /** Set for a shadow handler: its effects are withheld. */
  readonly would?: { readonly next: string | null; readonly mails: number; readonly puts: number }
  readonly code?: string
  readonly reason?: string
  readonly err?: { readonly stack?: string; readonly message?: string }
}

const [INFO, WARN] = [30, 40] as const

/** Prints the lines that `devLine` makes from the log. */
export const showDevLines =
  ({ print }: Pick<Terminal, 'print'>) =>
  (json: string): void => {
    const line = devLine(json)
    if (line !== undefined) print(line)
  }

/** Formats a log line for the author of the handlers, one line per document. Undefined for irrelevant lines. */
function devLine(json: string): string | undefined {
  const line = JSON.parse(json) as Line
  const { level, time, msg, code, reason, err } = line
  if (level <= INFO && line.next === undefined && line.would === undefined) return undefined
  if (level === WARN && line.type === undefined) return undefined // a warning about the server or the process
  const at = new Date(time).toTimeString().slice(0, 8)
  const mark = level <= INFO ? '✓' : line.doc === undefined ? '!' : '✗'
  const place = placeIn(err?.stack)
  const why = [
    code === undefined ? undefined : `${code}: ${reason}`,
    code === undefined ? err?.message : undefined,
    place,
  ].filter((part) => part !== undefined)
  return oneLine(`${at} ${mark} ${[...documentOf(line), ...(why.length > 0 ? [why.join('  ')] : [])].join('  ')}`)

  function documentOf({ db, doc, type, state, next, would }: Line): string[] {
    if (doc === undefined) return [msg]
    const way = [state, next ?? would?.next ?? undefined].filter((one) => one !== undefined).join(' → ')
    return [
      `${db === undefined ? '' : `${db}/`}${doc}`,
      `${type} ${way}`,
      ...(next === undefined || level > INFO ? [msg] : []),
    ]
  }
}
