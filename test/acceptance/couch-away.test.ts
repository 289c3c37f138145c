/** CouchDB fails at each step of a registration, and recovers. */
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import {
  cut,
  cutAfterUpstream,
  refuse,
  silence,
  startFaultyProxy,
  type Fault,
  type FaultyProxy,
} from '../support/faulty-proxy.ts'
import type { SeenRequest } from '../../sidecar/testing/proxy-exchange.ts'
import { sample } from '../support/thorough.ts'
import { linksTo, newDevice, startRegistration, typeCode, untilState } from './registration.ts'
import type { NewDevice, Registration } from './registration.ts'

/** The writes of the sidecar for one device, in their order without failures. */
const writes = [
  'the claim',
  'the count of mails',
  'the hash of the code',
  'the result of sending the mail',
  'the count of tried codes',
  'the confirmation',
  'the confirmed state of the device',
  'the user',
  // The last two come in either order, or together.
  'the used state of the confirmation',
  'the active state of the device',
]

const isWrite = ({ method, path }: SeenRequest): boolean =>
  (method === 'PUT' || method === 'POST') && !path.includes('/_local/') && !path.endsWith('/_all_docs')

/** The fault of a request, and the number of requests that it affects. */
interface Trouble {
  readonly fault: Fault
  readonly requests: number
}

/** Applies the fault from the write with this number on. The returned function says whether it was applied. */
function plan(proxy: FaultyProxy, write: number, { fault, requests }: Trouble): () => boolean {
  let written = 0
  let left = requests
  proxy.plan((request) => {
    if (isWrite(request)) written += 1
    return written > write && left-- > 0 ? fault : undefined
  })
  return () => left < requests
}

/** CouchDB is down until the sidecar reports it. */
const vanish =
  (proxy: FaultyProxy, { sidecar }: Registration): Fault =>
  async (exchange) => {
    exchange.cut()
    await proxy.down()
    await eventually(async () => expect((await fetch(`${sidecar.url}/_up`)).status).toBe(503))
    await proxy.up()
  }

const troubles: Record<string, (proxy: FaultyProxy, registration: Registration) => Trouble> = {
  'does not arrive': () => ({ fault: cut, requests: 1 }),
  'arrives without an answer': () => ({ fault: cutAfterUpstream, requests: 1 }),
  'gets a 500, as do the next four requests,': () => ({ fault: refuse(500), requests: 5 }),
  'meets a CouchDB outage': (...world) => ({ fault: vanish(...world), requests: 1 }),
}

/** Repeats the click after a failure, as the page advises the user. Resolves with the password. */
async function registerAnyway(registration: Registration, device: NewDevice): Promise<string | undefined> {
  await registration.control.member.put(device)
  await untilState(registration, device._id, 'confirming')
  const [link] = linksTo(registration, device.owner)
  const click = async () => {
    const { body } = await typeCode(link!)
    expect(body).toMatchObject({ ok: true })
    return body.password
  }
  return eventually(click)
}

test.each(Object.keys(troubles))('a write that %s delays a registration without loss or repetition', async (name) => {
  const steps = sample([...writes.keys()], 9)
  const proxy = await startFaultyProxy()
  const registration = await startRegistration({ COUCHDB_URL: proxy.url })
  const { control, smtp } = registration
  const devices = steps.map(() => newDevice())
  let met = 0
  for (const [i, device] of devices.entries()) {
    const step = steps[i]!
    const isMet = plan(proxy, step, troubles[name]!(proxy, registration))
    expect(await registerAnyway(registration, device), writes[step]).toEqual(expect.any(String))
    if (isMet()) met += 1
  }
  expect(met).toBeGreaterThanOrEqual(steps.length - 1)

  const mailed = smtp.accepted.flatMap(({ envelope }) => envelope.to)
  expect(mailed).toEqual(devices.map(({ owner }) => owner))
  await eventually(async () => {
    const states = (await control.documents()).map(({ state }) => state)
    expect(states.filter((state) => state === 'active')).toHaveLength(devices.length)
    expect(states.filter((state) => state === 'used')).toHaveLength(devices.length)
  })
})

test('while CouchDB does not answer, each inbox client gets an error without waiting for the others', async () => {
  const proxy = await startFaultyProxy()
  const { sidecar } = await startRegistration({ COUCHDB_URL: proxy.url })
  const body = JSON.stringify({ ...newDevice(), secret_sha256: 'a'.repeat(64) })
  const send = async () => {
    const headers = { 'content-type': 'application/json' }
    const signal = AbortSignal.timeout(40_000) // a request from the sidecar to CouchDB may take a minute
    const answer = await fetch(`${sidecar.url}/inbox`, { method: 'POST', headers, body, signal })
    return { status: answer.status, retryAfter: answer.headers.get('retry-after') }
  }
  proxy.plan(() => silence)
  const all = await Promise.all(Array.from({ length: 20 }, send)) // more than the limit of concurrent requests
  expect(all).toEqual(all.map(() => ({ status: 503, retryAfter: '5' })))
  proxy.plan(() => undefined)
  await eventually(async () => expect(await send()).toMatchObject({ status: 201 }))
})
