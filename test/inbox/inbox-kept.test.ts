/** The inbox never loses an accepted document: checked with generated requests and generated CouchDB failures. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cut, cutAfterUpstream, delay, pass, refuse, startFaultyProxy } from '../support/faulty-proxy.ts'
import { amount } from '../support/thorough.ts'
import { newDevice, newSecret, startInbox, type InboxRig, type Sent } from './inbox-rig.ts'

const troubles = [pass, pass, cut, cutAfterUpstream, refuse(500), refuse(503), delay(20), delay(20, cutAfterUpstream)]
const sending = fc.record({
  device: fc.nat(2),
  name: fc.constantFrom('phone', 'tablet'),
  way: fc.constantFrom('POST', 'PUT', 'bulk' as const),
})
type Sending = typeof sending extends fc.Arbitrary<infer One> ? One : never

/** Groups of requests: those of one group are concurrent, and the groups follow each other. */
const history = fc.array(fc.array(sending, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 4 })

/** The revision in the inbox's answer, if the inbox accepts the document. */
async function send(rig: InboxRig, device: Sent, { name, way }: Sending): Promise<string | undefined> {
  const { _id, ...rest } = { ...device, name }
  if (way === 'bulk') {
    const { status, body } = await rig.post({ docs: [{ _id, ...rest }] }, '/_bulk_docs')
    const [row] = status === 201 ? (body as unknown as { ok?: true; rev?: string }[]) : []
    return row?.ok && row.rev
  }
  const { status, body } = await (way === 'PUT' ? rig.put(_id, rest) : rig.post({ _id, ...rest }))
  return status === 201 ? (body.rev as string) : undefined
}

test('each document answered with 201 is stored once, with any failure of CouchDB', async () => {
  const proxy = await startFaultyProxy()
  const rig = await startInbox({ url: proxy.url, perMinute: 1e6, limit: 1e6 })
  let taken = 0
  const kept = async (groups: Sending[][], faults: number[]) => {
    const devices = [0, 1, 2].map(() => newSecret()).map((secret) => ({ secret, doc: newDevice(secret) }))
    const revs = devices.map(() => new Set<string>())
    proxy.plan(() => troubles[faults.shift() ?? 0])
    for (const group of groups) {
      await Promise.all(
        group.map(async (one) => {
          const rev = await send(rig, devices[one.device]!.doc, one)
          if (rev !== undefined) revs[one.device]!.add(rev)
        }),
      )
    }
    proxy.plan(() => undefined)
    for (const [at, { secret, doc }] of devices.entries()) {
      const [rev, ...others] = revs[at]!
      expect(others, 'only one body is accepted under an id').toEqual([])
      if (rev === undefined) continue
      taken += 1
      expect(await rig.stored(doc)).toMatchObject({ state: 'new', owner: doc.owner, inbox: { rev } })
      expect((await rig.status(doc._id, secret)).body).toMatchObject({ _rev: rev, state: 'new' })
    }
  }
  const faults = fc.array(fc.nat(troubles.length - 1), { maxLength: 40 })
  await fc.assert(fc.asyncProperty(history, faults, kept), { numRuns: amount(30, 300) })
  expect(taken).toBeGreaterThan(0)
})
