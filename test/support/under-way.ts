import { pass, type Fault } from './faults.ts'

export interface UnderWay {
  /** Counts a request from its arrival to the end of its answer. */
  readonly fault: Fault
  /** The number of requests so far. */
  readonly count: number
  /** The number of requests in progress. */
  readonly now: number
  /** The highest number of requests at the same time. */
  readonly most: number
}

/** Counts the requests in progress. */
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
