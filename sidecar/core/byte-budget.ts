import { onAbort } from './on-abort.ts'

/** Limits the bytes in flight in this process. */
export interface ByteBudget {
  readonly budget: number
  /** Bytes held by all shares. May exceed the budget: each share may hold one item. */
  readonly used: number
  /** Creates a share for one holder. */
  share(): BudgetShare
}

/** One holder's part. After a refusal it is full until half of its room is free: work comes in batches. */
export interface BudgetShare {
  readonly full: boolean
  /** Bytes held. */
  readonly used: number
  /** Takes the bytes, if the share has room for them. Each call that returns true needs one `leave`. */
  tryEnter(bytes: number): boolean
  leave(bytes: number): void
  /** Resolves when the share is not full; another caller may then be first. Rejects with the signal's reason. */
  whenRoom(signal: AbortSignal): Promise<void>
}

/**
 * Divides a budget of bytes among shares. A share may hold as many bytes as remain free beside it. A share that keeps
 * all leaves half to the others, nine leave a tenth. Each may also hold one item of any size: every item gets through.
 */
export function createByteBudget(budget: number): ByteBudget {
  let free = budget
  const ebbs = new Set<() => void>() // one for each full share

  function share(): BudgetShare {
    let used = 0
    const waiting = new Set<() => void>()

    function ebb(): void {
      if (used > 0 && used > free / 2) return
      ebbs.delete(ebb)
      for (const settle of [...waiting]) settle()
    }

    return {
      get full() {
        return ebbs.has(ebb)
      },
      get used() {
        return used
      },
      tryEnter(bytes) {
        const room = !ebbs.has(ebb) && (used === 0 || used + bytes <= free - bytes)
        if (room) {
          used += bytes
          free -= bytes
        } else ebbs.add(ebb)
        return room
      },
      leave(bytes) {
        used -= bytes
        free += bytes
        for (const other of ebbs) other()
      },
      async whenRoom(signal) {
        signal.throwIfAborted()
        if (!ebbs.has(ebb)) return
        await new Promise<void>((resolve, reject) => {
          const settle = () => {
            stopListening()
            waiting.delete(settle)
            if (signal.aborted) reject(signal.reason as Error)
            else resolve()
          }
          const stopListening = onAbort(signal, settle)
          waiting.add(settle)
        })
      },
    }
  }

  return {
    budget,
    get used() {
      return budget - free
    },
    share,
  }
}
