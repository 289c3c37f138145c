/** Schedules on three workers: one clock is an hour ahead, one an hour behind, and one worker is killed in a run. */
import { writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { isoTime } from '../../sidecar/core/clock.ts'
import { shiftedClock } from '../chaos/handlers.ts'
import { eventually } from '../support/eventually.ts'
import { startThree, writeNoting } from './own-handlers.ts'

const HOUR_MS = 3_600_000
const HANDLERS = `
  import { setTimeout as sleep } from 'node:timers/promises'
  import { defineHandlers } from 'couchdb-sidecar'
  export default defineHandlers((control) => {
    control.schedule('report', { cron: '0 0 1 1 *', onLost: 'retry' }, async (run, ctx) => {
      note('begins', run.due_at, ctx.key, process.env.SIDECAR_NAME)
      await sleep(2000)
      note('ends', run.due_at, ctx.key, process.env.SIDECAR_NAME)
    })
  })`
const ID = 'schedule:report'

test('each due time has one run, no run is early, and no client can write a schedule', async () => {
  const { module, noted } = await writeNoting(HANDLERS)
  const shifted = [HOUR_MS, -HOUR_MS].map(async (ms, i) => {
    const shift = module.replace(/[^/]+$/, `shift-${i}.mjs`)
    await writeFile(shift, shiftedClock(ms))
    return { NODE_OPTIONS: `--import ${shift}` }
  })
  const { control, named } = await startThree(module, ...(await Promise.all(shifted)))
  await eventually(async () => expect((await control.admin.get(ID)).state).toBe('waiting'))
  const planFor = (due_at: string) =>
    eventually(
      async () => void (await control.admin.put({ ...(await control.admin.get(ID)), state: 'waiting', due_at })),
    )

  await planFor(isoTime(Date.now() + HOUR_MS / 2))
  await new Promise((resolve) => setTimeout(resolve, 3000))
  expect(await noted(), 'no run starts early').toEqual([])

  const due = isoTime(Date.now() + 1000)
  await planFor(due)
  const [begun] = await eventually(async () => {
    const all = await noted()
    expect(all).toHaveLength(1)
    return all
  })
  expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(due))
  await named(begun![3]!).kill()
  await eventually(async () => expect((await noted()).filter(([what]) => what === 'ends')).toHaveLength(1))
  const all = await noted()
  expect(all.map(([what, at]) => `${what} ${at}`)).toEqual([`begins ${due}`, `begins ${due}`, `ends ${due}`])
  expect(new Set(all.map(([, , key]) => key)).size, 'both attempts have the same key').toBe(1)

  const again = isoTime(Date.now() + 500)
  await planFor(again)
  await eventually(async () => expect((await noted()).filter(([what]) => what === 'ends')).toHaveLength(2))
  expect((await noted()).slice(3).map(([what, at]) => `${what} ${at}`)).toEqual([`begins ${again}`, `ends ${again}`])
  await eventually(async () =>
    expect((await control.admin.withPrefix(`${ID}:`)).map(({ state }) => state)).toEqual(['done', 'done']),
  )
  // The sidecar may still write the schedule: a conflict comes before the guard.
  await eventually(async () => {
    const docs = [await control.admin.get(ID), ...(await control.admin.withPrefix(`${ID}:`))]
    for (const doc of [...docs, { _id: 'schedule:mine', type: 'schedule/report', state: 'waiting' }]) {
      await expect(control.member.put({ ...doc, due_at: isoTime(0) })).rejects.toMatchObject({ code: 'forbidden' })
    }
  })
})
