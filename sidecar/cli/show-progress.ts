import type { Clock } from '../core/clock.ts'
import type { Progress } from '../deploy/staging/surroundings.ts'
import type { Terminal } from './terminal.ts'

export interface ShownProgress {
  readonly show: (progress: Progress) => void
  /** Clears the line for other output. */
  readonly end: () => void
}

const PLAIN_EVERY_MS = 5000
const WIDTH = 12

/** Shows a bar on a terminal, and a line every few seconds elsewhere. Shorter work prints no line. */
export function showProgress({ redraw, note }: Pick<Terminal, 'redraw' | 'note'>, clock: Clock): ShownProgress {
  let place = ''
  let began: { readonly name: string; readonly at: number; readonly done: number } | undefined
  let notedAt = clock.ticks()

  /** A terminal may cut off the end of the bar's line. */
  function report(bar: string, line: string): void {
    if (redraw) return redraw(bar)
    if (clock.ticks() - notedAt < PLAIN_EVERY_MS) return
    notedAt = clock.ticks()
    note(line)
  }

  function warming(name: string, done: number, total: number): void {
    const now = clock.ticks()
    if (began?.name !== name) began = { name, at: now, done }
    const rate = (done - began.done) / ((now - began.at) / 1000)
    const share = total > 0 ? Math.min(1, done / total) : 1
    const pace = rate > 0 ? paceOf(rate, total - done) : ''
    const figures = `${Math.floor(share * 100)} %, ${grouped(done)} of ${grouped(total)} changes${pace}`
    report(`${barOf(share)} ${figures}: ${name}${place}`, `index of ${name}${place}: ${figures}`)
  }

  function show(progress: Progress): void {
    const { kind, database } = progress
    switch (kind) {
      case 'database':
        place = ` (${grouped(progress.number)} of ${grouped(progress.of)} databases)`
        return report(database + place, database + place)
      case 'warming':
        return warming(`${database}/${progress.ddoc}`, progress.done, progress.total)
      case 'watching': {
        const { name, since } = progress.holder
        const watch = `${progress.forMs / 1000} s to see whether it still is`
        return remark(`${database}: ${name} has been deploying since ${since}; ${watch}`)
      }
      case 'trouble':
        return remark(`${database}: waiting for CouchDB (${progress.reason})`)
      default:
        return kind satisfies never
    }
  }

  function remark(line: string): void {
    redraw?.('')
    note(line)
  }

  return { show, end: () => redraw?.('') }
}

export const barOf = (share: number): string => `[${'#'.repeat(Math.round(share * WIDTH)).padEnd(WIDTH, '.')}]`

const paceOf = (rate: number, left: number): string => `, ${grouped(Math.round(rate))}/s, ${inWords(left / rate)} left`

export const grouped = (count: number): string => String(count).replace(/\B(?=(\d{3})+$)/g, ',')

function inWords(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
