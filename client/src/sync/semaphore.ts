/** Limits how many run at a time; the others wait in line. */
export interface Semaphore {
  /** Resolves with the release, which may be called once; when the signal aborts, at once with an empty release. */
  take(signal: AbortSignal): Promise<() => void>
}

export function createSemaphore(count: number): Semaphore {
  let free = count
  const waiting: (() => void)[] = []

  function release(): void {
    const next = waiting.shift()
    if (next) next()
    else free += 1
  }

  return {
    take(signal) {
      if (signal.aborted) return Promise.resolve(() => undefined)
      if (free > 0) {
        free -= 1
        return Promise.resolve(release)
      }
      return new Promise((resolve) => {
        const turn = () => {
          signal.removeEventListener('abort', giveUp)
          resolve(release)
        }
        function giveUp() {
          waiting.splice(waiting.indexOf(turn), 1)
          resolve(() => undefined)
        }
        waiting.push(turn)
        signal.addEventListener('abort', giveUp, { once: true })
      })
    },
  }
}
