/**
 * The rate at which a backlog of changes is read with its documents: by the sidecar's follower, and by the usual
 * packages.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Couch } from '../sidecar/couch/client.ts'
import { dropDatabase, fillDatabase } from './database.ts'
import { median } from './figures.ts'
import type { Line } from './report.ts'
import { usageIfOurs } from './usage.ts'

export const FOLLOWERS = ['plain read', 'sidecar', 'nano get', 'nano spool', 'cloudant-follow'] as const
export type Follower = (typeof FOLLOWERS)[number]

export interface FollowingJob {
  readonly url: string
  readonly name: string
  readonly follower: Follower
  readonly count: number
}

/** `undefined` if the package is not installed. */
export type FollowingResult = { readonly seconds: number; readonly cpuSeconds: number } | undefined

interface Measured {
  readonly perSecond: number
  /** Processor milliseconds for 1,000 rows. */
  readonly serverMs: number
  readonly ownMs: number
}

const GOAL = 1.2

export async function measureFollowing(
  { couch, url, serverPid }: { couch: Couch; url: string; serverPid: number | undefined },
  count: number,
  rounds: number,
): Promise<Line[]> {
  const { name } = await fillDatabase(couch, count, {})
  const measured = new Map<Follower, Measured[]>()
  for (let round = 0; round < rounds; round++) {
    for (const follower of FOLLOWERS) {
      const before = await usageIfOurs(serverPid)
      const result = await follow({ url, name, follower, count })
      const { cpuSeconds } = await usageIfOurs(serverPid)
      if (!result) continue
      const of = (seconds: number) => (seconds / count) * 1e6
      const serverMs = of(cpuSeconds - before.cpuSeconds)
      const one = { perSecond: count / result.seconds, serverMs, ownMs: of(result.cpuSeconds) }
      process.stderr.write(`following: ${follower}: ${figureOf(one)}\n`)
      measured.set(follower, [...(measured.get(follower) ?? []), one])
    }
  }
  await dropDatabase(couch, couch.db(name))
  const rateOf = (follower: Follower) => median(measured.get(follower)!.map(({ perSecond }) => perSecond))
  const ratio = rateOf('sidecar') / rateOf('nano spool')
  return [
    ...[...measured].map(([follower, ones]) => ({
      what: `${count} changes with documents: ${follower}`,
      figure: figureOf({
        perSecond: rateOf(follower),
        serverMs: median(ones.map(({ serverMs }) => serverMs)),
        ownMs: median(ones.map(({ ownMs }) => ownMs)),
      }),
    })),
    { what: 'sidecar / nano spool', figure: ratio.toFixed(2), target: `≥ ${GOAL}`, met: ratio >= GOAL },
  ]
}

async function follow(job: FollowingJob): Promise<FollowingResult> {
  const script = fileURLToPath(new URL('./following-process.ts', import.meta.url))
  const child = fork(script, [JSON.stringify(job)], { execArgv: ['--import', 'tsx'] })
  const exited = once(child, 'exit')
  const [result] = (await Promise.race([once(child, 'message'), exited])) as [{ result?: FollowingResult } | number]
  if (typeof result !== 'object') throw new Error(`the process of ${job.follower} ended with ${String(result)}`)
  await exited
  return result.result
}

const figureOf = ({ perSecond, serverMs, ownMs }: Measured): string =>
  `${Math.round(perSecond)} rows/s; for 1,000 rows ${serverMs.toFixed(0)} ms of CouchDB’s processor, ${ownMs.toFixed(0)} ms of its reader’s`
