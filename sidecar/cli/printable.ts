import { oneLine, printable } from '../core/visible.ts'
import type { Terminal } from './terminal.ts'

/** Wraps a terminal so that only printable text reaches it. */
export const withPrintable = ({ print, note, redraw, ...terminal }: Terminal): Terminal => ({
  ...terminal,
  print: (text) => print(printable(text)),
  note: (text) => note(printable(text)),
  redraw: redraw && ((line) => redraw(oneLine(line))),
})

/** Escapes control characters in the texts of JSON: pino-pretty prints texts as they are. */
export const shownJson = (line: string): string =>
  printable(line).replace(/\\(u[0-9a-f]{4}|.)/gi, (escape, what: string) =>
    /^["\\/nt]$/.test(what) ? escape : `\\${escape}`,
  )
