/**
 * `npm run bench`: the sidecar beside the best rate of the same CouchDB, and beside the usual loop, in one run of
 * several alternating rounds, as medians. It uses the server at `COUCHDB_URL`, or starts one from the binary at
 * `COUCHDB_BIN`. It writes its figures to `bench/results/`. `BENCH_PARTS=latency,sharing` measures these parts only.
 * `npm run bench -- --against <commit>` measures the throughput of that commit in turns with this one's.
 */
import { parseArgs } from 'node:util'
import { createCouch } from '../sidecar/couch/client.ts'
import { findCouchBinary, startCouchBinary } from '../test/support/couchdb-binary.ts'
import { measureDeploy } from './deploy.ts'
import { measureDevices } from './devices.ts'
import { measureVisited } from './visited-databases.ts'
import { measureGlobalChanges } from './global-changes.ts'
import { median } from './figures.ts'
import { measureFollowing } from './following.ts'
import { measureIndexes } from './indexes.ts'
import { measureLatency } from './latency.ts'
import { measureIdle, measurePeakMemory } from './quiet.ts'
import { measureOperatorPage } from './operator-page.ts'
import { measurePublish } from './publish.ts'
import { measureRequests } from './requests.ts'
import { measureChurn, measureShared, measureTakeover } from './sharing.ts'
import { createReport, formatReport, saveReport, type Line } from './report.ts'
import { measureThroughput } from './throughput.ts'
import { otherVersion, thisVersion } from './versions.ts'

const COUNT = Number(process.env.BENCH_DOCS ?? 20_000)
const WAITING = Number(process.env.BENCH_WAITING ?? 100_000)
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3)
/** The number in a minute: one every 5 s, at most a fifth earlier. */
const SIGNS_OF_LIFE = 60 / 4 + 1

const server = process.env.COUCHDB_URL
  ? undefined
  : await startCouchBinary(findCouchBinary() ?? missing(), { asInstalled: true })
const url = process.env.COUCHDB_URL ?? server!.url
const pid = server?.pid
const couch = createCouch({ url })
const lines: Line[] = []
const { against } = parseArgs({ options: { against: { type: 'string' } } }).values
const other = against === undefined ? undefined : await otherVersion(against)
const versions = [await thisVersion(), ...(other ? [other] : [])]

try {
  const parts: Record<string, () => Promise<Line[]>> = {
    plain: () => throughput(false),
    guarded: () => throughput(true),
    following: () => measureFollowing({ couch, url, serverPid: pid }, 2 * COUNT, ROUNDS),
    latency,
    memory: async () => [await memory()],
    idle: async () => [await idle()],
    sharing,
    publish: async () => publish(),
    deploy: () => measureDeploy(couch, 5 * COUNT),
    updates: () => measureGlobalChanges(couch, url, pid),
    indexes: () => measureIndexes(couch, url),
    visited: () => measureVisited(couch, url, pid),
    requests: () => measureRequests(couch, pid),
    devices: () => measureDevices(couch, url, pid),
    page: () => measureOperatorPage(couch, url, pid),
  }
  const wanted = process.env.BENCH_PARTS?.split(',') ?? (other ? ['plain', 'guarded'] : Object.keys(parts))
  for (const part of wanted) lines.push(...(await (parts[part] ?? missingPart(part, parts))()))
  const report = await createReport(couch, lines)
  console.log(`\n${formatReport(report)}`)
  console.log(await saveReport(report, 'bench/results'))
} finally {
  await other?.remove()
  await couch.close()
  await server?.stop()
}

function throughput(guarded: boolean): Promise<Line[]> {
  const server = { couch, url, serverPid: pid }
  return measureThroughput({ ...server, count: COUNT, rounds: ROUNDS, versions, guarded, progress })
}

async function latency(): Promise<Line[]> {
  const { feed, handler } = await measureLatency(couch, 500, 10)
  const ms = ({ median, p99 }: typeof feed) => `median ${median.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`
  const factor = handler.median / feed.median
  return [
    { what: 'write to row, bare continuous feed', figure: ms(feed) },
    { what: 'write to start of a safe handler', figure: ms(handler) },
    { what: 'handler / bare feed, medians', figure: factor.toFixed(2), target: '≤ 2', met: factor <= 2 },
  ]
}

async function memory(): Promise<Line> {
  const bytes = await measurePeakMemory(couch, url, WAITING, 30)
  const mb = bytes / 1e6
  return {
    what: `peak memory, ${WAITING} documents waiting`,
    figure: `${mb.toFixed(0)} MB`,
    target: '≤ 120 MB',
    met: mb <= 120,
  }
}

async function idle(): Promise<Line> {
  const { writes, requests } = await measureIdle(couch, url, 60)
  return {
    what: 'an idle minute',
    figure: `${writes} documents written, ${requests} requests that write (heartbeats)`,
    target: `none but ${SIGNS_OF_LIFE} heartbeats`,
    met: writes === 0 && requests <= SIGNS_OF_LIFE,
  }
}

function publish(): Line[] {
  const { empty, none, one } = measurePublish()
  const beside = ([ours, emitter]: readonly [number, number]) =>
    `${ours.toFixed(1)} ns; EventEmitter ${emitter.toFixed(1)} ns; a call of an empty function ${empty.toFixed(1)} ns`
  return [
    {
      what: 'an event without a subscriber',
      figure: beside(none),
      target: '< EventEmitter',
      met: none[0] < none[1],
    },
    { what: 'an event with one subscriber', figure: beside(one) },
  ]
}

function missingPart(part: string, parts: object): never {
  throw new Error(`BENCH_PARTS: there is no part "${part}"; there are ${Object.keys(parts).join(', ')}`)
}

function whole(figure: number): number {
  return Math.round(figure)
}

async function sharing(): Promise<Line[]> {
  const inVain: number[] = []
  const lines: Line[] = []
  for (const handlerMs of [0, 20]) {
    const [one, three]: [number[], number[]] = [[], []]
    for (let round = 0; round < ROUNDS; round++) {
      one.push((await measureShared(couch, url, COUNT, 1, handlerMs)).rate)
      const shared = await measureShared(couch, url, COUNT, 3, handlerMs)
      three.push(shared.rate)
      inVain.push(shared.inVain)
      progress(`handler of ${handlerMs} ms: one worker: ${whole(one.at(-1)!)}/s; three: ${whole(shared.rate)}/s`)
    }
    const ratio = median(three) / median(one)
    const handler = handlerMs > 0 ? `a handler that waits ${handlerMs} ms` : 'a handler that does nothing'
    const figure = `${ratio.toFixed(2)} (${whole(median(three))} / ${whole(median(one))} documents/s)`
    lines.push({ what: `three workers / one, ${handler}`, figure, target: '≥ 1', met: ratio >= 1 })
  }
  const { knownMs, rate } = await measureTakeover(couch, url, COUNT)
  const { mean, worst } = measureChurn(100, 100)
  return [
    ...lines,
    {
      what: 'claims that were lost',
      figure: `${(median(inVain) * 100).toFixed(2)} %`,
      target: '< 1 %',
      met: median(inVain) < 0.01,
    },
    {
      what: 'takeover of the half of a worker that was killed (timeout 3 s)',
      figure: `known after ${(knownMs / 1000).toFixed(1)} s, then ${Math.round(rate)} documents/s`,
    },
    {
      what: 'share moved when one of 100 comes or goes, over 1/n',
      figure: `mean ${mean.toFixed(2)}, worst ${worst.toFixed(2)}`,
    },
  ]
}

function progress(text: string): void {
  process.stderr.write(`${text}\n`)
}

function missing(): never {
  throw new Error('the bench needs a CouchDB: set COUCHDB_URL, or COUCHDB_BIN to its binary')
}
