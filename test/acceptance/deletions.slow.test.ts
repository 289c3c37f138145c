/** Three workers share the work and one is killed: each deletion is handled once. */
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { startThree, writeNoting } from './own-handlers.ts'

const HANDLERS = `
  import { setTimeout as sleep } from 'node:timers/promises'
  import { defineHandlers } from 'couchdb-sidecar'
  export default defineHandlers((control) => {
    control.safe('photo', 'listed', async () => undefined)
    control.deleted('photo', async (photo, ctx) => {
      await sleep(20)
      note(photo._id, photo.file, ctx.database)
    }, { onLost: 'retry', concurrency: 4 })
  })`

test('each deletion is handled with the fields it kept', async () => {
  const { module, noted } = await writeNoting(HANDLERS)
  const { control, orders: photos, workers } = await startThree(module)
  const [first, ...others] = workers

  async function bringAndDelete(count: number, prefix: string): Promise<string[]> {
    const ids = Array.from({ length: count }, (_, n) => `${prefix}${n}`)
    await photos.bulk(ids.map((_id) => JSON.stringify({ _id, type: 'photo', state: 'listed', file: `${_id}.jpg` })))
    await eventually(async () =>
      expect((await photos.getMany(ids)).filter(({ docstate }) => docstate !== undefined)).toHaveLength(count),
    )
    const docs = await photos.getMany(ids)
    await photos.bulk(
      docs.map(({ _id, _rev, file }) => JSON.stringify({ _id, _rev, type: 'photo', file, _deleted: true })),
    )
    return ids
  }
  const deleted = await bringAndDelete(150, 'early')
  await eventually(async () => expect((await noted()).length).toBeGreaterThan(10))
  await first.kill()
  deleted.push(...(await bringAndDelete(50, 'late')))
  await eventually(async () => {
    const seen = new Set((await noted()).map(([id]) => id))
    expect(deleted.filter((id) => !seen.has(id))).toEqual([])
  })
  await Promise.all(others.map((worker) => worker.stop()))
  const all = await noted()
  for (const [id, file, database] of all) expect([file, database]).toEqual([`${id}.jpg`, photos.name])
  const twice = all.map(([id]) => id).filter((id, at, ids) => ids.indexOf(id) < at)
  expect(twice.length, 'only the runs that the kill interrupted are repeated').toBeLessThanOrEqual(4)
  await expect(
    control.member.put({ _id: `deletion:${photos.name}:x`, type: 'deletion/photo', state: 'run' }),
  ).rejects.toMatchObject({ code: 'forbidden' })
})
