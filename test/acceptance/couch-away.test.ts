/** CouchDB goes away at each step of a registration, and comes back. */
import { expect, onTestFinished, test } from 'vitest'
import { createTestCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import {
  cut,
  cutAfterUpstream,
  refuse,
  startFaultyProxy,
  type Fault,
  type FaultyProxy,
} from '../support/faulty-proxy.ts'
import type { SeenRequest } from '../support/proxy-exchange.ts'
import {
  linksTo,
  newDevice,
  register,
  startRegistration,
  typeCode,
  untilState,
  type Registration,
} from './registration.ts'

/** What the sidecar writes for one device: claim, ledger, code, outcome; confirmation, device; user, device. */
const WRITES = 8

const isWrite = ({ method, path }: SeenRequest): boolean =>
  (method === 'PUT' || method === 'POST') && !path.includes('/_local/') && !path.endsWith('/_all_docs')

/** From the write with this number on, the next `count` requests meet the fault. */
function faultAt(proxy: FaultyProxy, write: number, fault: Fault, count = 1): void {
  let writes = 0
  let left = count
  proxy.plan((request) => {
    if (isWrite(request)) writes += 1
    return writes >= write && left-- > 0 ? fault : undefined
  })
}

/** A person does not give up: the page says that it may be tried again. */
async function registerAnyway(registration: Registration) {
  const device = newDevice()
  await registration.control.member.put(device)
  await eventually(() => expect(linksTo(registration, device.owner)).toHaveLength(1), { within: 40_000 })
  const body = await eventually(
    async () => {
      const answer = await typeCode(linksTo(registration, device.owner)[0]!)
      expect(answer.body).toMatchObject({ ok: true })
      return answer.body
    },
    { within: 60_000 },
  )
  return { id: device._id, owner: device.owner, password: body.password }
}
