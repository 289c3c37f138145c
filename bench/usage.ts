/** What processes and servers use, and have done. */
import { readdir, readFile, readlink } from 'node:fs/promises'
import type { Couch } from '../sidecar/couch/client.ts'
import { answerOf } from '../test/support/answers.ts'

/** Resident memory and processor time of a process, by /proc. */
export async function usageOf(pid: number): Promise<{ bytes: number; cpuSeconds: number }> {
  const [status, stat] = [await readFile(`/proc/${pid}/status`, 'utf8'), await readFile(`/proc/${pid}/stat`, 'utf8')]
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = Number(fields[11]) + Number(fields[12]) // utime, stime: hundredths of a second
  return { bytes: Number(/VmRSS:\s+(\d+) kB/.exec(status)![1]) * 1024, cpuSeconds: ticks / 100 }
}

/** The same of a process that may be somebody else's: nothing is known of it then. */
export const usageIfOurs = (pid: number | undefined) =>
  pid === undefined ? Promise.resolve({ bytes: NaN, cpuSeconds: NaN }) : usageOf(pid)

export interface Stats {
  readonly requests: number
  readonly writes: number
}

/** Counted by CouchDB since it was started. */
export async function statsOf(couch: Couch): Promise<Stats> {
  const { httpd, database_writes } = await answerOf<{
    httpd: { requests: { value: number } }
    database_writes: { value: number }
  }>(couch, { path: '_node/_local/_stats/couchdb' })
  return { requests: httpd.requests.value, writes: database_writes.value }
}

/** The question itself is one of the requests. */
export const difference = (now: Stats, before: Stats): Stats => ({
  requests: now.requests - before.requests - 1,
  writes: now.writes - before.writes,
})

/** Open sockets of a process. */
export async function socketsOf(pid: number): Promise<number> {
  const fds = await readdir(`/proc/${pid}/fd`)
  const links = await Promise.all(fds.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')))
  return links.filter((link) => link.startsWith('socket:')).length
}
