/** The sidecar stops or is killed while the mail server has a mail and has not answered yet. */
import PostalMime from 'postal-mime'
import { expect, test } from 'vitest'
import { createLatch } from '../docstate/rig.ts'
import { startFaultySmtp } from '../mail/faulty-smtp.ts'
import { needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { silenceAfterUpstream, startFaultyProxy } from '../support/faulty-proxy.ts'
import type { Settings, Sidecar } from './sidecar.ts'
import { runCommand, startSidecar } from './start.ts'
import {
  askForMail,
  linkIn,
  linksTo,
  logIn,
  newDevice,
  register,
  startRegistration,
  startRegistrationProcess,
  typeCode,
  untilState,
  type Registration,
} from './registration.ts'

/** A registration whose mail the mail server holds until the latch opens. */
async function holdMail<S extends Sidecar>(start: (settings: Settings) => Promise<Registration<S>>, settings = {}) {
  const smtp = await startFaultySmtp()
  const latch = createLatch()
  smtp.become({ data: { until: latch.opened } })
  const registration = await start({ SMTP_URL: smtp.url, ...settings })
  const device = newDevice()
  await registration.control.member.put(device)
  await eventually(() => expect(smtp.received).toHaveLength(1))
  return { ...registration, id: device._id, smtp, open: () => latch.open() }
}

const messageIdIn = (mail: string | undefined) => /^Message-ID: (.*)$/im.exec(mail ?? '')?.[1]

test('the mail of a killed sidecar is parked instead of sent twice, and an operator retries it', async () => {
  const { control, settings, sidecar, smtp, id, ...registration } = await holdMail(startRegistrationProcess, {
    SIDECAR_LEASE: '5s',
  })
  await sidecar.kill()
  const successor = await startSidecar(settings)
  await eventually(async () =>
    expect((await control.admin.get(id)).docstate).toMatchObject({ state: 'new', parked: {} }),
  )
  expect(smtp.received).toHaveLength(1)

  const explained = await runCommand(['explain', control.name, id], settings)
  expect(explained).toMatchObject({ code: 0, stderr: '' })
  expect(explained.stdout).toContain('The document has been parked since')
  expect(explained.stdout).toContain('couchdb-sidecar retry')
  const status = await runCommand(['status'], settings)
  expect(status.stdout).toMatch(/device +new +1 +parked/)

  smtp.become({})
  const retried = await runCommand(['retry', control.name, id], settings)
  expect(retried).toEqual({ code: 0, stdout: `${id} is back in state new\n`, stderr: '' })
  await untilState({ control }, id, 'confirming')
  expect(smtp.received.map(messageIdIn)).toEqual([messageIdIn(smtp.received[0]), messageIdIn(smtp.received[0])])
  expect(messageIdIn(smtp.received[0])).toMatch(/^<.+@.+>$/)
  for (const mail of smtp.received) {
    expect(await typeCode(linkIn((await PostalMime.parse(mail)).text, successor.url))).toMatchObject({
      status: 200,
      body: { ok: true },
    })
  }
  registration.open()
})

test('a device registers again if its sidecar was killed before it showed the password', async () => {
  needs('pbkdf2 other than sha1')
  const proxy = await startFaultyProxy()
  const first = await startRegistrationProcess({ COUCHDB_URL: proxy.url })
  const device = newDevice()
  const link = await askForMail(first, device)
  const written = new Promise<void>((resolve) => {
    proxy.next(
      async (exchange) => {
        await silenceAfterUpstream(exchange)
        resolve()
      },
      ({ method, path }) => method === 'PUT' && path.startsWith('/_users/'),
    )
  })
  const clicked = expect(typeCode(link)).rejects.toThrow()
  await written
  await first.sidecar.kill()
  await clicked

  const registration = { ...first, sidecar: await startSidecar(first.settings) }
  await untilState(registration, device._id, 'active')
  const { body } = await typeCode(linksTo(registration, device.owner)[0]!)
  expect(body).not.toHaveProperty('password')
  await eventually(async () => {
    const { admin } = registration.control
    await admin.put({ ...(await admin.get(device._id)), state: 'revoked' })
  })
  const anew = await register(registration, newDevice({ owner: device.owner }))
  expect(await logIn(anew.user, anew.password)).toMatchObject({ status: 200 })
})

test('a stopping sidecar finishes the mail that it is sending', async () => {
  const { control, sidecar, smtp, id, open } = await holdMail(startRegistration, { SIDECAR_GRACE: '60s' })
  const stopped = sidecar.stop()
  expect((await fetch(`${sidecar.url}/_up`)).ok).toBe(true)
  open()
  expect(await stopped).toBe(0)
  expect(await control.admin.get(id)).toMatchObject({ state: 'confirming' })
  expect(smtp.accepted).toHaveLength(1)
})

test('a mail that takes longer than the grace period is parked and not sent again', async () => {
  const { control, settings, sidecar, smtp, id } = await holdMail(startRegistration, { SIDECAR_GRACE: '0s' })
  expect(await sidecar.stop()).toBe(0)
  const { docstate } = await control.admin.get(id)
  expect(docstate).toMatchObject({ state: 'new', parked: { reason: expect.stringContaining('stopped') as string } })
  const successor = await startSidecar(settings)
  const another = newDevice()
  smtp.become({})
  await control.member.put(another)
  await untilState({ control }, another._id, 'confirming')
  expect(smtp.received.filter((mail) => mail.includes(another.owner))).toHaveLength(1)
  expect(smtp.received).toHaveLength(2)
  expect(await successor.stop()).toBe(0)
})

test('the link of a parked mail works if the mail arrived, and the device needs no decision any more', async () => {
  const { control, settings, sidecar, smtp, id, open } = await holdMail(startRegistration, { SIDECAR_GRACE: '0s' })
  await sidecar.stop()
  open()
  expect((await control.admin.get(id)).docstate).toHaveProperty('parked')
  const { url } = await startSidecar(settings)
  const link = linkIn((await PostalMime.parse(smtp.received[0]!)).text, url)
  expect(await typeCode(link)).toMatchObject({ status: 200, body: { ok: true } })
  expect(await untilState({ control }, id, 'active')).not.toHaveProperty('docstate.failure')
  expect(smtp.received).toHaveLength(1)
})
