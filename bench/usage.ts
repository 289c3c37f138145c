/** The resource usage of processes and servers. */
import { readdir, readFile, readlink } from 'node:fs/promises'
import type { Couch } from '../sidecar/couch/client.ts'
import { answerOf } from '../test/support/answers.ts'

/** Resident memory of a process, and the processor time of it and all its child processes, from /proc. */
export async function usageOf(pid: number): Promise<{ bytes: number; cpuSeconds: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const children = await childrenOf()
  const cpu = (of: number): number => {
    const { ticks, started } = children.get(of) ?? { ticks: 0, started: [] }
    return started.reduce((sum, child) => sum + cpu(child), ticks)
  }
  return { bytes: Number(/VmRSS:\s+(\d+) kB/.exec(status)![1]) * 1024, cpuSeconds: cpu(pid) / 100 }
}

interface Process {
  /** Processor time of it and of its ended child processes, hundredths of a second. */
  readonly ticks: number
  readonly started: number[]
}

async function childrenOf(): Promise<Map<number, Process>> {
  const processes = new Map<number, Process>()
  const stats = (await readdir('/proc'))
    .filter((name) => /^\d+$/.test(name))
    .map(async (name) => [Number(name), await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '')] as const)
  const parents: [number, number][] = []
  for (const [pid, stat] of await Promise.all(stats)) {
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ') // from the third field, the state
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0) // utime, stime, cutime, cstime
    processes.set(pid, { ticks, started: [] })
    parents.push([Number(fields[1]), pid])
  }
  for (const [parent, pid] of parents) processes.get(parent)?.started.push(pid)
  return processes
}

/** The same for a process that may belong to another user: the result is then undefined. */
export const usageIfOurs = (pid: number | undefined) =>
  pid === undefined ? Promise.resolve({ bytes: NaN, cpuSeconds: NaN }) : usageOf(pid)

export interface Stats {
  readonly requests: number
  readonly writes: number
}

/** CouchDB's counters since its start. */
export async function statsOf(couch: Couch): Promise<Stats> {
  const { httpd, database_writes } = await answerOf<{
    httpd: { requests: { value: number } }
    database_writes: { value: number }
  }>(couch, { path: '_node/_local/_stats/couchdb' })
  return { requests: httpd.requests.value, writes: database_writes.value }
}

/** The request for the counters counts as one. */
export const difference = (now: Stats, before: Stats): Stats => ({
  requests: now.requests - before.requests - 1,
  writes: now.writes - before.writes,
})

/** Bytes sent over the loopback interface, with TCP headers, in both directions. */
export async function loopbackBytes(): Promise<number> {
  const lines = (await readFile('/proc/net/dev', 'utf8')).split('\n')
  return Number(
    lines
      .find((line) => line.trim().startsWith('lo:'))!
      .split(':')[1]!
      .trim()
      .split(/\s+/)[0],
  )
}

/** The number of open sockets of a process. */
export async function socketsOf(pid: number): Promise<number> {
  const fds = await readdir(`/proc/${pid}/fd`)
  const links = await Promise.all(fds.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')))
  return links.filter((link) => link.startsWith('socket:')).length
}
