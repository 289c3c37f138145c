import type { Clock } from '../core/clock.ts'
import { CouchError } from '../couch/errors.ts'
import type { Index } from './indexes-of.ts'
import type { Kind, Progress } from './kinds/kind.ts'

export interface JobOptions {
  readonly kind: Kind
  readonly index: Index
  /** Where the database was when it was decided. */
  readonly target: number
  /** Asks first whether somebody else is at it, or has done it. */
  readonly looksFirst: boolean
  readonly clock: Clock
  readonly onProgress: (progress: Progress) => void
}

/** Between two looks at a build: twice as long each time, but not long where nothing goes on. */
const [FIRST_MS, LONGEST_MS, LONGEST_IDLE_MS] = [20, 5000, 500]
/** So many looks in a row that find it idle and no further. Then whoever queries would be told why. */
const STILL = 3
const MOST_QUESTIONS = 3

/**
 * Has an index brought to where its database was, and waits until it is there. True if it was not there before. Throws what keeps it from that
 * (`CouchError`), or the signal's reason; the server builds on then.
 */
export async function bringUpToDate(options: JobOptions, signal: AbortSignal): Promise<boolean> {
  const { kind, index, target, looksFirst, clock, onProgress } = options
  const isThere = ({ seq, lag }: Progress) => lag === 0 || seq >= target
  const look = async () => {
    const progress = await kind.read(index, target, signal)
    onProgress(progress)
    return progress
  }

  kind.begin?.(index)
  let last = looksFirst ? await look() : undefined
  if (last && isThere(last)) return false
  if (!last?.isRunning) await kind.build(index, target, signal)
  let still = 0
  let questions = 0
  for (let pauseMs = FIRST_MS; ; pauseMs *= 2) {
    await clock.sleep((pauseMs = Math.min(pauseMs, last?.isRunning === false ? LONGEST_IDLE_MS : LONGEST_MS)), signal)
    const progress = await look()
    if (isThere(progress)) return true
    still = progress.isRunning || progress.seq !== last?.seq ? 0 : still + 1
    last = progress
    if (still < STILL) continue
    if (questions === MOST_QUESTIONS) throw stuck(index, progress, target)
    questions += 1
    still = 0
    await kind.ask(index, signal)
  }
}

const stuck = ({ database, ddoc }: Index, { seq }: Progress, target: number) =>
  new CouchError('server', {
    request: `${database}/${ddoc}`,
    reason: `the index stays at ${seq}, and the database was at ${target}`,
  })
