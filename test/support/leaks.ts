import { setTimeout as delay } from 'node:timers/promises'

/** Resources that must not outlive a test, by Node's names, with their common names. */
const watched: Readonly<Record<string, string>> = {
  TCPServerWrap: 'listening servers',
  TCPSocketWrap: 'sockets',
  TLSWrap: 'TLS sockets',
  ProcessWrap: 'child processes',
  Timeout: 'timers',
  FSEventWrap: 'file watchers',
  Worker: 'worker threads',
}

/**
 * The number of resources of each kind. Only those that keep the process alive count; an idle pool connection does not.
 */
export type Resources = ReadonlyMap<string, number>

export function countResources(): Resources {
  const counts = new Map<string, number>()
  for (const kind of process.getActiveResourcesInfo()) {
    if (kind in watched) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  }
  return counts
}

/** Resources that clients of an older server open and close at any time. */
const served: ReadonlySet<string> = new Set(['TCPSocketWrap', 'Timeout'])

/** The resources in excess of `before`, as a sentence for each kind. */
export function findLeaks(before: Resources): string[] {
  const serves = before.has('TCPServerWrap')
  return [...countResources()].flatMap(([kind, count]) => {
    const more = count - (before.get(kind) ?? 0)
    return more > 0 && !(serves && served.has(kind)) ? [`${more} more ${watched[kind]} than before`] : []
  })
}

/** Resolves when no resource is left over. Throws if one still exists after `within` milliseconds. */
export async function expectNoLeaks(before: Resources, within = 3000): Promise<void> {
  const deadline = performance.now() + within
  let leaks = findLeaks(before)
  while (leaks.length > 0) {
    if (performance.now() > deadline) throw new Error(`left behind: ${leaks.join(', ')}`)
    await delay(20)
    leaks = findLeaks(before)
  }
}
