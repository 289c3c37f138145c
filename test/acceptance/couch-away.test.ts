/** CouchDB goes away at each step of a registration, and comes back. */
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

/** What the sidecar writes for one device, in this order as long as nothing goes wrong. */
const writes = [
  'the claim',
  'the count of mails',
  'the hash of the code',
  'that the mail is sent',
  'the code that is tried',
  'the confirmation',
  'that the device is confirmed',
  'the user',
  // The last two in either order, or together.
  'that the code is used',
  'that the device is active',
]

const isWrite = ({ method, path }: SeenRequest): boolean =>
  (method === 'PUT' || method === 'POST') && !path.includes('/_local/') && !path.endsWith('/_all_docs')

/** What becomes of the request, and of how many after it. */
interface Trouble {
  readonly fault: Fault
  readonly requests: number
}

/** From the write with this number on. The answer tells whether it came to that. */
function plan(proxy: FaultyProxy, write: number, { fault, requests }: Trouble): () => boolean {
  let written = 0
  let left = requests
  proxy.plan((request) => {
    if (isWrite(request)) written += 1
    return written > write && left-- > 0 ? fault : undefined
  })
  return () => left < requests
}

/** Down until the sidecar has noticed. */
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
  'is done, but not answered': () => ({ fault: cutAfterUpstream, requests: 1 }),
  'and the next four requests are answered with 500': () => ({ fault: refuse(500), requests: 5 }),
  'finds CouchDB gone for a while': (...world) => ({ fault: vanish(...world), requests: 1 }),
}

/** A person does not give up: the page says that one may try again. Resolves with the password. */
async function registerAnyway(registration: Registration, device: NewDevice): Promise<string | undefined> {
  await registration.control.member.put(device)
  await untilState(registration, device._id, 'confirming', 60_000)
  const [link] = linksTo(registration, device.owner)
  const click = async () => {
    const { body } = await typeCode(link!)
    expect(body).toMatchObject({ ok: true })
    return body.password
  }
  return eventually(click, { within: 60_000 })
}

test.each(Object.keys(troubles))(
  'a write that %s delays a registration, and nothing is lost or done twice',
  { timeout: 300_000 },
  async (name) => {
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
  },
)

test('while CouchDB is silent whoever sends to the inbox is told so, and does not wait behind all others', async () => {
  const proxy = await startFaultyProxy()
  const { sidecar } = await startRegistration({ COUCHDB_URL: proxy.url })
  const body = JSON.stringify({ ...newDevice(), secret_sha256: 'a'.repeat(64) })
  const send = async () => {
    const headers = { 'content-type': 'application/json' }
    const signal = AbortSignal.timeout(40_000) // a request of the sidecar's own may take a minute
    const answer = await fetch(`${sidecar.url}/inbox`, { method: 'POST', headers, body, signal })
    return { status: answer.status, retryAfter: answer.headers.get('retry-after') }
  }
  proxy.plan(() => silence)
  const all = await Promise.all(Array.from({ length: 20 }, send)) // more than may be asked at once
  expect(all).toEqual(all.map(() => ({ status: 503, retryAfter: '5' })))
  proxy.plan(() => undefined)
  await eventually(async () => expect(await send()).toMatchObject({ status: 201 }))
})
