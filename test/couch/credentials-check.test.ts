/** The check of the sidecar's credentials, before any other request to CouchDB. */
import pino from 'pino'
import { onTestFinished, expect, test } from 'vitest'
import { createCredentialsCheck } from '../../sidecar/couch/credentials-check.ts'
import type { Couch } from '../../sidecar/couch/client.ts'
import { createAnonymous, createUser } from '../ddocs/users.ts'
import { createTestCouch, uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { refuse, startFaultyProxy } from '../support/faulty-proxy.ts'
import { createManualClock } from '../support/manual-clock.ts'

interface Line {
  readonly level: number
  readonly msg: string
  readonly reason: string
}

function begin(couch: Couch) {
  const lines: Line[] = []
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as Line) })
  const [clock, over] = [createManualClock(), new AbortController()]
  let isIn = false
  const waiting = createCredentialsCheck({ couch, clock, log })
    .untilAccepted(over.signal)
    .then(
      () => (isIn = true),
      () => 'the test is over',
    )
  onTestFinished(async () => {
    over.abort(new Error('the test is over'))
    await waiting
  })
  return { lines, clock, isIn: () => isIn }
}

test('a server admin passes the check', async () => {
  const { isIn, lines } = begin(createTestCouch())
  await eventually(() => expect(isIn()).toBe(true))
  expect(lines).toEqual([])
})

test('a wrong password is logged, and checked again rarely enough to avoid a lockout', async () => {
  const proxy = await startFaultyProxy()
  const url = Object.assign(new URL(proxy.url), { username: uniqueName('unknown'), password: 'wrong' })
  const { isIn, lines, clock } = begin(createTestCouch({ url: url.href }))
  const waits = [3_000, 110_000, 110_000, 110_000] // five wrong passwords within five minutes lock the name out
  for (const [i, waitMs] of waits.entries()) {
    const requested = i + 1
    await eventually(() => expect(clock.sleeping).toBe(1))
    expect(proxy.requests.map(({ path }) => path)).toEqual(Array.from({ length: requested }, () => '/_session'))
    expect(lines).toHaveLength(requested)
    expect(lines[0]).toMatchObject({ level: 50, msg: expect.stringContaining('COUCHDB_URL: expected') as string })
    await clock.advance(waitMs - 1)
    expect(proxy.requests).toHaveLength(requested)
    // After a failure of CouchDB the check ends, because each part waits for CouchDB itself.
    if (requested === waits.length) proxy.plan(() => refuse(500))
    await clock.advance(1)
  }
  await eventually(() => expect(isIn()).toBe(true))
})

test('a user who is no admin is logged, with the name if it has one', async () => {
  const { name, couch } = await createUser()
  for (const [someone, reason] of [
    [couch, `${name} is not a server admin`],
    [createAnonymous(), 'it has no name'],
  ] as const) {
    const { isIn, lines } = begin(someone)
    await eventually(() => expect(lines).toMatchObject([{ reason }]))
    expect(isIn()).toBe(false)
  }
})
