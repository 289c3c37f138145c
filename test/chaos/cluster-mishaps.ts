/** Additional mishaps for three sidecars that each use their own node of a cluster. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { findFaketime } from '../support/faketime.ts'
import { answerWith, cutAfterUpstream, pass, silenceAfterUpstream } from '../support/faulty-proxy.ts'
import { checkersOf } from '../support/processes.ts'
import { POISON } from './handlers.ts'
import { jobsOf, placeOf, write, type Board } from './jobs.ts'
import { mishaps, pick, withFaults, type ClusterWorld } from './mishaps.ts'
import { LEASE_MS, type Worker } from './trio.ts'

export interface Scene extends ClusterWorld {
  readonly workers: readonly Worker[]
  readonly board: Board
}

/** Like a `Mishap`. */
export type ClusterMishap = (victim: Worker, scene: Scene) => Promise<void>

/** Statuses after which a request is retried; other statuses rightly end it. */
const STATUSES = [401, 404, 408, 429, 500, 502, 503, 504]
const BODIES = [
  ...['', 'null', 'true', '0', '""', '"error"', '[]', '[null]', '{}', '{"error"', 'no JSON', '\u0000\ud800'],
  ...['{"error":null}', '{"error":{},"reason":[]}', '{"ok":true}', '{"rows":[null]}', '{"results":null}'],
]

/** The number of process deaths within which the document that kills them is found. */
const MOST_DEATHS = 5

const unique = (name: string) => `${name}-${Math.floor(performance.now())}`

export const clusterMishaps: Readonly<Record<string, ClusterMishap>> = {
  ...mishaps,
  async 'a node that is killed and restarted later'(_victim, { nodes, whole, random }) {
    const node = pick(random, nodes)
    await node.kill()
    await sleep(random() * 3 * LEASE_MS)
    await node.restart()
    await whole()
  },
  async 'a partition, with writes on both sides'(_victim, { nodes, part, heal, random, board }) {
    await part(pick(random, nodes))
    const name = `${unique('parted')}-`
    const ids = jobsOf(5, name)
    const writing = board.flatMap((node, place) => [
      write([node], ids), // the same jobs at all nodes
      write([node], jobsOf(5, `${name}${place}-`)),
    ])
    await sleep((1 + random()) * LEASE_MS)
    await heal()
    await Promise.all(writing)
  },
  async 'killed couchjs processes'(_victim, { nodes }) {
    for (const until = performance.now() + 3000; performance.now() < until; await sleep(100)) {
      for (const { pid } of nodes.flatMap((node) => checkersOf(node.pid))) process.kill(pid, 'SIGKILL')
    }
  },
  async 'error bodies of every kind'(victim, { random }) {
    await withFaults(victim, () => (random() < 0.5 ? pass : answerWith(pick(random, STATUSES), pick(random, BODIES))))
  },
  async 'lost answers'(victim, { random }) {
    await withFaults(victim, () => pick(random, [cutAfterUpstream, cutAfterUpstream, silenceAfterUpstream, pass]))
    victim.proxy.dropConnections()
  },
  async 'a document that kills its process'(_victim, { workers, board }) {
    const id = unique(POISON)
    await write(board, [id])
    const isFound = async () => {
      const doc = await board[0]![placeOf(id, board[0]!.length)]!.get(id)
      return doc.state === 'error'
    }
    let deaths = 0
    await eventually(
      async () => {
        for (const worker of workers.filter(({ isAlive }) => !isAlive)) {
          deaths++
          await worker.start().catch(() => undefined) // it may die during its start
        }
        expect(await isFound()).toBe(true)
      },
      { within: 300_000 }, // a database that a glob matches may wait for three resyncs
    )
    console.log(`${deaths} deaths of ${id}`)
    expect(deaths).toBeLessThanOrEqual(MOST_DEATHS)
  },
  ...(findFaketime() && { 'a clock that jumps': jump }),
}

/** Sets the clock of a running process forward and back. */
async function jump(victim: Worker, { folder, random }: Scene): Promise<void> {
  const file = join(folder, 'faketime')
  const set = (offset: string) => writeFile(file, `${offset}\n`)
  await set('+0')
  await victim.stop()
  await victim.start({
    ...{ LD_PRELOAD: findFaketime()!, FAKETIME_TIMESTAMP_FILE: file },
    ...{ FAKETIME_CACHE_DURATION: '1', DONT_FAKE_MONOTONIC: '1' },
  })
  for (const offset of ['+2h', '-30m', '+10d', '-2s', '+0'].sort(() => random() - 0.5)) {
    await set(offset)
    await sleep(LEASE_MS)
  }
}
