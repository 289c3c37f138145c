import { pass, type Fault } from './faults.ts'

export interface UnderWay {
  /** Meets the request, and counts it until its answer has ended. */
  readonly fault: Fault
  /** How many have come. */
  readonly count: number
  /** How many of them there are now. */
  readonly now: number
  /** How many there were at the same time, at the most. */
  readonly most: number
}

/** Counts the requests that have begun and not ended. */
export function countUnderWay(then: Fault = pass): UnderWay {
  let [count, now, most] = [0, 0, 0]
  return {
    async fault(exchange) {
      count += 1
      most = Math.max(most, ++now)
      try {
        await then(exchange)
      } finally {
        now -= 1
      }
    },
    get count() {
      return count
    },
    get now() {
      return now
    },
    get most() {
      return most
    },
  }
}
