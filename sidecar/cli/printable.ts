import { oneLine, printable } from '../core/visible.ts'
import type { Terminal } from './terminal.ts'

/** The terminal, on which nothing but text comes. */
export const withPrintable = ({ print, note, redraw, ...terminal }: Terminal): Terminal => ({
  ...terminal,
  print: (text) => print(printable(text)),
  note: (text) => note(printable(text)),
  redraw: redraw && ((line) => redraw(oneLine(line))),
})

/** JSON whose texts hold escapes in place of controls: pino-pretty prints texts as they are. */
export const shownJson = (line: string): string =>
  printable(line).replace(/\\(u[0-9a-f]{4}|.)/gi, (escape, what: string) =>
    /^["\\/nt]$/.test(what) ? escape : `\\${escape}`,
  )
