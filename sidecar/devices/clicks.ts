import type { MadePassword } from './passwords.ts'

/** What clicks with the same link and code share: those at the same time, and those after one that got no answer. */
export interface SharedClick {
  /** The password of a device that brought none; undefined where another one counts. */
  made: Promise<MadePassword> | undefined
  /** The writing of the confirm document. */
  written: Promise<void> | undefined
  /** Some page has said that it is confirmed, and shown the password. */
  shown: boolean
}

/**
 * Remembers the passwords that were made and that no page has shown yet. A form may be sent twice, and its answer may
 * come too late or get lost: then the next click shows the same password. In memory only: what a restart has forgotten
 * is mended by registering the device anew.
 */
export interface Clicks {
  /** Runs a click with what it shares; that is forgotten after the last of those that saw the password. */
  during<T>(id: string, click: (shared: SharedClick) => Promise<T>): Promise<T>
}

/** Clicks that got no answer and did not come back: the oldest are forgotten first. */
const MAX_KEPT = 1000

export function createClicks(): Clicks {
  const kept = new Map<string, SharedClick & { running: number }>()

  function tidy(): void {
    for (const [id, { running, made, shown }] of kept) {
      if (running === 0 && (shown || !made || kept.size > MAX_KEPT)) kept.delete(id)
    }
  }

  return {
    async during(id, click) {
      const shared = kept.get(id) ?? { made: undefined, written: undefined, shown: false, running: 0 }
      kept.set(id, shared)
      shared.running += 1
      try {
        return await click(shared)
      } finally {
        shared.running -= 1
        tidy()
      }
    },
  }
}
