import type { Status } from './client-status.ts'

/** The one snapshot that is shown: what the app sees of everything. */
export interface Display {
  readonly status: Status
  /** Looks again soon: changes that come together are shown together. */
  refreshSoon(): void
  refresh(): void
  /** This one, whatever there is. */
  show(status: Status): void
  /** Refreshes no more. */
  end(): void
}

const GATHER_MS = 50

/** `onShown` is told of each that is not as the one before it. */
export function createDisplay(take: () => Status, onShown: (status: Status) => void): Display {
  let status: Status
  /** The same as text, to tell it from the next. */
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
