/** Registered devices, and the notes in their channels. */
import { expect } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { channelOf, newAddress, registerDevice, startDevice, untilStatus, type Device, type Stage } from './stage.ts'

export async function startRegistered(stage: Stage, owner = newAddress('ann'), name = 'phone'): Promise<Device> {
  const device = await startDevice(stage, { roundMs: 1000 })
  await registerDevice(stage, device, owner, name)
  return device
}

export const untilLive = ({ client }: Device, id: string) =>
  untilStatus(client, () => channelOf(client, id).sync.state === 'live')

export const untilPlace = ({ client }: Device, id: string, place: string) =>
  untilStatus(client, () => channelOf(client, id).place === place)

export const hasNote = ({ client }: Device, channel: string, note: string) =>
  eventually(async () =>
    expect(await client.open(channelOf(client, channel).id).get(note)).toMatchObject({ _id: note }),
  )

export const lacksNote = async ({ client }: Device, channel: string, note: string) =>
  expect(client.open(channelOf(client, channel).id).get(note)).rejects.toMatchObject({ status: 404 })

export const hasNoteOnceSynced = async (device: Device, id: string, note: string) => {
  await untilLive(device, id)
  await hasNote(device, id, note)
}
