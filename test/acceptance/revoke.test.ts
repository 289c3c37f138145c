import { expect, test } from 'vitest'
import { createTestCouch, needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { urlOf } from './control.ts'
import {
  askForMail,
  logIn,
  newDevice,
  register,
  shareRegistration,
  typeCode,
  untilState,
  type Registration,
} from './registration.ts'

const ofThisFile = shareRegistration()

/** The control database, accessed as a device that is a member. */
async function asDevice({ control }: Registration, { user, password }: { user: string; password: string }) {
  await control.admit(user)
  return createTestCouch({ url: urlOf(user, password) }).db(control.name)
}

test('a device that revokes itself loses its user, and the owner’s other devices keep working', async () => {
  needs('pbkdf2 other than sha1')
  const registration = ofThisFile()
  const [lost, kept] = [newDevice(), newDevice({ owner: 'keeper@example.com' })]
  const [one, other] = [
    await register(registration, { ...lost, owner: kept.owner }),
    await register(registration, kept),
  ]
  const database = await asDevice(registration, one)
  await database.put({ ...(await database.get(one.id)), state: 'revoked' })
  await eventually(async () => expect(await logIn(one.user, one.password)).toEqual({ status: 401 }))
  expect(await createTestCouch().db('_users').find(`org.couchdb.user:${one.user}`)).toBeUndefined()
  expect(await logIn(other.user, other.password)).toMatchObject({ status: 200 })
  await untilState(registration, other.id, 'active')
  expect(await untilState(registration, one.id, 'revoked')).toMatchObject({ user: one.user })
})

test('another device of the same owner can revoke a device', async () => {
  needs('pbkdf2 other than sha1')
  const registration = ofThisFile()
  const one = await register(registration)
  const other = await register(registration, newDevice({ owner: one.owner }))
  const database = await asDevice(registration, other)
  await database.put({ ...(await database.get(one.id)), state: 'revoked' })
  await eventually(async () => expect(await logIn(one.user, one.password)).toEqual({ status: 401 }))
})

test('another device of the same owner can revoke an unconfirmed device, and its link stops working', async () => {
  needs('pbkdf2 other than sha1')
  const registration = ofThisFile()
  const one = await register(registration)
  const pending = newDevice({ owner: one.owner })
  const link = await askForMail(registration, pending)
  const stranger = await register(registration)
  const revoked = { ...(await registration.control.admin.get(pending._id)), state: 'revoked', docstate: undefined }
  for (const database of [await asDevice(registration, stranger), registration.control.member]) {
    await expect(database.put(revoked)).rejects.toMatchObject({ code: 'forbidden' })
  }
  const database = await asDevice(registration, one)
  await database.put(revoked)
  expect(await typeCode(link)).toMatchObject({ status: 403 })
  await eventually(async () =>
    expect(await registration.control.admin.get(pending._id)).toMatchObject({
      state: 'revoked',
      docstate: { handled: expect.any(String) as string },
    }),
  )
  expect(await logIn(one.user, one.password)).toMatchObject({ status: 200 })
})

test('a device of another owner, or another member of the database, cannot revoke a device', async () => {
  needs('pbkdf2 other than sha1')
  const registration = ofThisFile()
  const { control } = registration
  const [one, stranger] = [await register(registration), await register(registration)]
  const revoked = { ...(await control.admin.get(one.id)), state: 'revoked' }
  for (const database of [await asDevice(registration, stranger), control.member]) {
    await expect(database.put(revoked)).rejects.toMatchObject({
      code: 'forbidden',
      reason: expect.stringContaining('by its owner') as string,
    })
  }
  expect(await logIn(one.user, one.password)).toMatchObject({ status: 200 })
})
