/** The events that a running sidecar publishes over HTTP. */
import { expect, onTestFinished, test } from 'vitest'
import { couchUrl } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { askForMail, newDevice, startRegistration } from './registration.ts'

const basic = (url: string) => {
  const { username, password } = new URL(url)
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
}

test('only an admin can follow the events of a registration, and a stop ends the feeds', async () => {
  const registration = await startRegistration()
  const { sidecar } = registration
  expect((await fetch(`${sidecar.url}/_events/document:saved`)).status).toBe(401)

  async function listen(channel: string) {
    const leaving = new AbortController()
    onTestFinished(() => leaving.abort())
    const headers = { authorization: basic(couchUrl()) }
    const response = await fetch(`${sidecar.url}/_events/${channel}`, { headers, signal: leaving.signal })
    const reader = { events: [] as Record<string, unknown>[], ended: false }
    void (async () => {
      let text = ''
      for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
        text += Buffer.from(chunk).toString()
        reader.events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data!) as never)
      }
      reader.ended = true
    })().catch(() => undefined)
    return reader
  }
  const [saved, sent] = [await listen('document:saved'), await listen('mail:sent')]
  const device = newDevice()
  await askForMail(registration, device)
  await eventually(() => {
    expect(saved.events).toContainEqual(expect.objectContaining({ id: device._id, state: 'new', next: 'confirming' }))
    expect(sent.events).toEqual([{ message_id: expect.stringMatching(/^<.*>$/) as string, to: device.owner }])
  })
  expect(await sidecar.stop()).toBe(0)
  await eventually(() => expect([saved.ended, sent.ended]).toEqual([true, true]))
})
