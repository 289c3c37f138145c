import { onAbort } from './on-abort.ts'

/** Bytes that may be in flight at once in this process. */
export interface ByteBudget {
  readonly budget: number
  /** Bytes held by all. May be more than the budget: each may hold one item. */
  readonly used: number
  /** A part for one holder. */
  share(): BudgetShare
}

/** The part of one holder. Once it was refused it is full until half of its room is free: work comes in groups. */
export interface BudgetShare {
  readonly full: boolean
  /** Bytes held. */
  readonly used: number
  /** Takes the bytes, if there is room for them. Each time that it does needs one `leave`. */
  tryEnter(bytes: number): boolean
  leave(bytes: number): void
  /** Resolves when it is not full; another caller may be first then. Rejects with the signal's reason. */
  whenRoom(signal: AbortSignal): Promise<void>
}

/**
 * Divides a budget of bytes. A share may hold as much as is free beside it: one that never lets go leaves half to all
 * others, nine of them a tenth. And each may hold one item, whatever its size: there must be a way for all.
 */
export function createByteBudget(budget: number): ByteBudget {
  let free = budget
  const ebbs = new Set<() => void>() // of the shares that are full

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
