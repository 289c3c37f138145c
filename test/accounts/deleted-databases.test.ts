import pino from 'pino'
import { normaliseAddress } from '../../sidecar/accounts/owner.ts'
import { expect, onTestFinished, test } from 'vitest'
import { keepUserDatabases } from '../../sidecar/accounts/accounts-feature.ts'
import { accountIdOf, ownershipIdOf } from '../../sidecar/accounts/account-names.ts'
import { systemClock } from '../../sidecar/core/clock.ts'
import { createEvents } from '../../sidecar/events/channels.ts'
import { undivided } from '../../sidecar/workers/name-partition.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { answerWith, startFaultyProxy } from '../support/faulty-proxy.ts'

/** Two users are ready. The database of `here` exists, the database of `gone` does not. */
test('a database missing from the list is checked by a request before its account is resynced', async () => {
  const [control, existing] = [await freshDb('control'), await freshDb('userdb-there')]
  const users = { here: existing.name, gone: `${existing.name}-gone` }
  for (const [user, database] of Object.entries(users)) {
    const _id = accountIdOf(normaliseAddress(user))
    await control.put({ _id: ownershipIdOf(database), type: 'user_database', account: _id })
    await control.put({
      _id,
      type: 'account',
      state: 'ready',
      address: user,
      user_id: user,
      database,
      devices: [],
      channels: [],
    })
  }
  const proxy = await startFaultyProxy()
  proxy.plan(({ path }) => (path.startsWith('/_all_dbs') ? answerWith(200, '[]') : undefined))
  const log = pino({ level: 'silent' })
  const options = { couch: createTestCouch({ url: proxy.url }), controlDb: control.name, events: createEvents({ log }) }
  const stopping = new AbortController()
  const running = keepUserDatabases(
    { ...options, partition: undivided, clock: systemClock, random: Math.random, log },
    stopping.signal,
  )
  onTestFinished(async () => {
    stopping.abort(new Error('the test is over'))
    await running
  })
  const stateOf = async (user: string) => (await control.get(accountIdOf(normaliseAddress(user)))).state
  await eventually(async () => expect(await stateOf('gone')).toBe('changed'))
  expect(await stateOf('here')).toBe('ready')
})
