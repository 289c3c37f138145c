/** A sidecar ends in each possible way, while a user's handler runs or its result is being saved. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { silence, silenceAfterUpstream, startFaultyProxy, type Fault } from '../support/faulty-proxy.ts'
import { createControl } from './control.ts'
import { launch } from './launch.ts'
import { startProcessWith, writeModule } from './own-handlers.ts'
import { settingsOf } from './registration.ts'
import { createLines, type Settings } from './sidecar.ts'
import { runCommand, startSidecar } from './start.ts'

/** An order is paid and its handler runs until the test lets it end. */
async function startHeld(mode: 'safe' | 'unsafe', more: Settings = {}) {
  const requested: ServerResponse[] = []
  const server = createServer((_request, response) => void requested.push(response))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const module = await writeModule(`
    import { defineHandlers } from 'couchdb-sidecar'
    export default defineHandlers((control) => {
      control.${mode}('order', 'paid', async (order) => {
        await fetch('http://127.0.0.1:${(server.address() as AddressInfo).port}')
        return { ...order, state: 'invoiced' }
      })
    })`)
  const stage = await startProcessWith(module, more)
  await stage.orders.put({ _id: 'o', type: 'order', state: 'paid' })
  await eventually(() => expect(requested).toHaveLength(1))
  return { ...stage, requested, order: () => stage.orders.get('o') }
}

type Held = Awaited<ReturnType<typeof startHeld>>

const untilInvoiced = ({ order }: Held) =>
  eventually(async () => expect(await order()).toMatchObject({ state: 'invoiced' }))
const untilParked = ({ order }: Held, reason: string) =>
  eventually(async () =>
    expect(await order()).toMatchObject({
      ...{ state: 'paid', docstate: { parked: { reason: expect.stringContaining(reason) as string } } },
    }),
  )

test('after a kill during a safe handler, the next sidecar runs the handler again', async () => {
  const held = await startHeld('safe')
  await held.sidecar.kill()
  await startSidecar(held.settings)
  await eventually(() => expect(held.requested).toHaveLength(2))
  held.requested[1]!.end()
  await untilInvoiced(held)
})

/** Faults of the save during which the sidecar is killed, and the result afterwards. */
const saves: Record<string, { fault: Fault; then: (held: Held) => Promise<unknown> }> = {
  'the save arrives, and the document has its result': {
    fault: silenceAfterUpstream,
    then: untilInvoiced,
  },
  'the save is lost, and the document is parked': {
    fault: silence,
    then: (held) => untilParked(held, 'did not renew its claim'),
  },
}

test.each(Object.keys(saves))('a sidecar is killed while it saves: %s', async (name) => {
  const { fault, then } = saves[name]!
  const proxy = await startFaultyProxy()
  const held = await startHeld('unsafe', { COUCHDB_URL: proxy.url, SIDECAR_LEASE: '5s' })
  const met = new Promise<void>((resolve) => {
    proxy.next(
      async (exchange) => {
        await fault(exchange)
        resolve()
      },
      ({ body }) => body.includes('"invoiced"'),
    )
  })
  held.requested[0]!.end()
  await met
  await held.sidecar.kill()
  await startSidecar(held.settings)
  await then(held)
  expect(held.requested).toHaveLength(1)
})

test('a second stop signal ends the sidecar at once', async () => {
  const { sidecar } = await startHeld('unsafe', { SIDECAR_GRACE: '300s' })
  const stopped = sidecar.stop()
  await eventually(() => expect(sidecar.log.map(({ msg }) => msg).join()).toContain('Press Ctrl-C again to exit now'))
  expect(await Promise.all([stopped, sidecar.stop()])).toEqual([1, 1])
})

test.each([
  ['SIGTERM', 'is unreachable', 'down'],
  ['SIGINT', 'does not answer', 'silent'],
] as const)('%s during the start, while CouchDB %s, ends the sidecar with exit code 0', async (name, _, how) => {
  const proxy = await startFaultyProxy()
  proxy.plan(() => silence)
  if (how === 'down') await proxy.down()
  const { child, kill } = launch(
    ['start'],
    settingsOf(await createControl(), { COUCHDB_URL: proxy.url, SIDECAR_PORT: '0' }),
  )
  onTestFinished(kill)
  const gone = once(child, 'close')
  const lines = createLines()
  createInterface({ input: child.stdout! }).on('line', lines.add)
  await eventually(() => {
    if (how === 'silent') return expect(proxy.requests).not.toEqual([])
    expect(lines.output()).toContain('waiting for CouchDB')
  })
  child.kill(name)
  expect(await gone).toEqual([0, null])
  // The last lines may arrive after the process has ended.
  await eventually(() => expect(lines.log.at(-1)).toMatchObject({ msg: 'stopped' }))
})

test('the last lines of the log are in order, also if one is still being written when the sidecar ends', async () => {
  const pipe = join(await mkdtemp(join(tmpdir(), 'ends-')), 'pipe')
  onTestFinished(() => rm(dirname(pipe), { recursive: true }))
  await promisify(execFile)('mkfifo', [pipe])
  // Writes of the log wait for the one thread, which waits until the test opens the pipe.
  const module = await writeModule(`
    import { open } from 'node:fs'
    import { defineHandlers } from 'couchdb-sidecar'
    process.prependListener('SIGTERM', () => open(${JSON.stringify(pipe)}, 'r', () => undefined))
    export default defineHandlers(() => undefined)`)
  const { sidecar } = await startProcessWith(module, { UV_THREADPOOL_SIZE: '1' })
  const stopped = sidecar.stop()
  const isNearlyOver = () => expect(fetch(sidecar.url, { signal: AbortSignal.timeout(1000) })).rejects.toThrow()
  // Work of the start may need the thread, too. Then the stop waits until the pipe is open.
  await eventually(isNearlyOver, { within: 10_000 }).catch(() => undefined)
  await delay(100)
  await writeFile(pipe, '')
  expect(await stopped).toBe(0)
  const messages = () => sidecar.log.slice(-2).map(({ msg }) => msg)
  await eventually(() => expect(messages()).toEqual([expect.stringContaining('Waiting for running'), 'stopped']))
})

test('a sidecar stops while CouchDB is unreachable, with the same effect as a kill', async () => {
  const proxy = await startFaultyProxy()
  const held = await startHeld('unsafe', { COUCHDB_URL: proxy.url, SIDECAR_LEASE: '5s', SIDECAR_GRACE: '1s' })
  await proxy.down()
  held.requested[0]!.end()
  expect(await held.sidecar.stop()).toBe(0)
  await proxy.up()
  expect((await held.order()).docstate).toHaveProperty('claim')
  await startSidecar(held.settings)
  await untilParked(held, 'did not renew its claim')
  expect(held.requested).toHaveLength(1)
})

test('explain shows a handler that does not end, and the stop parks its document', async () => {
  const held = await startHeld('unsafe', { SIDECAR_GRACE: '0s', SIDECAR_NAME: 'busy' })
  const { stdout } = await runCommand(['explain', held.orders.name, 'o'], held.settings)
  expect(stdout).toMatch(/The worker busy holds the document and renewed the claim at 20\d\d-/)
  expect(await held.sidecar.stop()).toBe(0)
  await untilParked(held, 'stopped before the handler had finished')
})

/** The handler runs `does` for the document `bad`, and waits for the test with all other documents. */
async function startWithBad(does: string) {
  const module = await writeModule(`
    import { defineHandlers } from 'couchdb-sidecar'
    export default defineHandlers((control) => {
      control.unsafe('order', 'paid', async (order) => {
        if (order._id === 'bad') ${does}
        await new Promise((resolve) => setTimeout(resolve, 1500))
        return { ...order, state: 'invoiced' }
      })
    })`)
  const stage = await startProcessWith(module)
  await stage.orders.put({ _id: 'good', type: 'order', state: 'paid' })
  await eventually(async () => expect(await stage.orders.get('good')).toHaveProperty('docstate.claim'))
  await stage.orders.put({ _id: 'bad', type: 'order', state: 'paid' })
  return stage
}

test.each([
  ['a promise that rejects', `void Promise.reject(new Error('left behind'))`],
  ['a timer that throws', `setTimeout(() => { throw new Error('left behind') }, 100)`],
])('after a handler leaves behind %s, the process drains and ends, and the log names the document', async (_, does) => {
  const { sidecar, orders } = await startWithBad(does)
  await eventually(() => expect(sidecar.output()).toContain('code that a handler left running'))
  const line = sidecar
    .output()
    .split('\n')
    .find((text) => text.includes('code that a handler left running'))!
  expect(JSON.parse(line)).toMatchObject({
    level: 60,
    database: orders.name,
    id: 'bad',
    err: { message: 'left behind' },
  })
  for (const id of ['good', 'bad']) {
    await eventually(async () => expect(await orders.get(id)).toMatchObject({ state: 'invoiced' }))
  }
  expect(await sidecar.stop()).toBe(1)
})

test('process.exit(0) in a handler is logged with the document, and the exit code is not 0', async () => {
  const { sidecar, orders } = await startWithBad('process.exit(0)')
  await eventually(() =>
    expect(sidecar.output()).toContain(
      `the handler of order in paid, with document bad of ${orders.name}, has called process.exit(0)`,
    ),
  )
  expect(await sidecar.stop()).toBe(1)
})
