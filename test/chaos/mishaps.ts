/** What happens to the fleet, one after the other; which one and to whom is drawn. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { needs, startPrivateCouch, type PrivateCouch } from '../support/couchdb.ts'
import { cut, cutAfterUpstream, delay, pass, refuse, type Fault } from '../support/faulty-proxy.ts'
import { seeded } from './seeded.ts'
import { LEASE_MS, wrongClock, type Worker } from './trio.ts'

export interface World {
  readonly couch: PrivateCouch
  readonly folder: string
  readonly random: () => number
}

/** Belongs to the running test, which is skipped where there is no server for it alone. */
export async function startWorld(seed: number): Promise<World> {
  needs('private server')
  const folder = await mkdtemp(join(tmpdir(), 'chaos-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const couch = await startPrivateCouch()
  onTestFinished(() => couch.stop())
  return { couch, folder, random: seeded(seed) }
}

/** Resolves when the world is as it was, apart from what the sidecars have to mend by themselves. */
export type Mishap = (victim: Worker, world: World) => Promise<void>

export const KILL = 'kill -9 and restart'

export const mishaps: Readonly<Record<string, Mishap>> = {
  async [KILL](victim, { random }) {
    await victim.kill()
    await sleep(random() * 2000)
    await victim.start()
  },
  async 'pause for twice the lease'(victim) {
    process.kill(victim.pid, 'SIGSTOP')
    await sleep(2 * LEASE_MS)
    process.kill(victim.pid, 'SIGCONT')
  },
  async 'restart of CouchDB'(_victim, { couch }) {
    await couch.restart()
  },
  async 'errors, cuts and delays'(victim, { random }) {
    const faults: Fault[] = [refuse(500), refuse(503), refuse(429), cut, cutAfterUpstream, delay(500), pass, pass]
    victim.proxy.plan(() => faults[Math.floor(random() * faults.length)])
    await sleep(3000)
    victim.proxy.plan(() => undefined)
  },
  async 'connections dropped'(victim) {
    victim.proxy.dropConnections()
  },
  async 'a network that is gone for longer than the lease'(victim) {
    await victim.proxy.down()
    await sleep(1.5 * LEASE_MS)
    await victim.proxy.up()
  },
  async 'a clock that is an hour off'(victim, { folder, random }) {
    await victim.stop()
    await victim.start(await wrongClock(folder, random() < 0.5))
  },
}
