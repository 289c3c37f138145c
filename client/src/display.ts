import type { Status } from './status.ts'

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
  let gathering: ReturnType<typeof setTimeout> | undefined
  let ended = false

  function refresh(): void {
    clearTimeout(gathering)
    gathering = undefined
    if (!ended) show(take())
  }

  function show(next: Status): void {
    const before = status && JSON.stringify(status)
    if (JSON.stringify(next) === before) return
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
