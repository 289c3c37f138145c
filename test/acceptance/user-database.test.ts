/** An admin deletes the database of a user. */
import { expect, test } from 'vitest'
import { normaliseAddress } from '../../sidecar/accounts/owner.ts'
import { accountIdOf } from '../../sidecar/accounts/account-names.ts'
import { createTestCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { newDevice, register, startWatching, type Registration } from './registration.ts'
import { startSidecar } from './start.ts'

/** Waits until the account is ready. */
const databaseOf = ({ control }: Registration, owner: string) =>
  eventually(async () => {
    const account = await control.admin.get(accountIdOf(normaliseAddress(owner)))
    expect(account).toMatchObject({ state: 'ready', database: expect.any(String) as string })
    return account.database as string
  })

test('a deleted user database is created again, even if no sidecar ran at its deletion', async () => {
  const registration = await startWatching()
  const device = newDevice({ owner: 'deleted@example.com' })
  await register(registration, device)
  const database = await databaseOf(registration, device.owner)
  const couch = createTestCouch()
  const isThere = () =>
    eventually(async () => expect(await couch.db(database).info()).toMatchObject({ db_name: database }))
  await isThere()

  await couch.db(database).drop()
  await isThere()
  await databaseOf(registration, device.owner)

  await registration.sidecar.stop()
  await couch.db(database).drop()
  await startSidecar(registration.settings)
  await isThere()
})
