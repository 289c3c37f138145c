import type { Status } from './client-status.ts'

/** The snapshot that the app sees. */
export interface Display {
  readonly status: Status
  /** Refreshes soon: simultaneous changes appear together. */
  refreshSoon(): void
  refresh(): void
  /** Shows this status instead of the current state. */
  show(status: Status): void
  /** Stops all refreshes. */
  end(): void
}

const GATHER_MS = 50

/** `onShown` is called for each status that differs from the one before. */
export function createDisplay(take: () => Status, onShown: (status: Status) => void): Display {
  let status: Status
  /** The status as text, for comparison with the next one. */
  let shown = ''
  let gathering: ReturnType<typeof setTimeout> | undefined
  let ended = false

  function refresh(): void {
    clearTimeout(gathering)
    gathering = undefined
    if (!ended) show(take())
  }

  function show(next: Status): void {
    const text = JSON.stringify(next)
    if (text === shown) return
    shown = text
    status = next
    onShown(status)
  }

  return {
    get status() {
      return status
    },
    refreshSoon() {
      if (!ended) gathering ??= setTimeout(refresh, GATHER_MS)
    },
    refresh,
    show,
    end() {
      ended = true
      clearTimeout(gathering)
    },
  }
}
