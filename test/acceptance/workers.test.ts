/** The list of workers: as documents, over HTTP, on the command line, and for handlers. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { couchUrl, createTestCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { runCommand } from './start.ts'
import { startRegistration } from './registration.ts'

const basic = (url: string) => {
  const { username, password } = new URL(url)
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
}

test('a running sidecar is in the list of workers, which only admins can read', async () => {
  const { sidecar, control, settings } = await startRegistration({ SIDECAR_NAME: 'host-1' })
  const db = createTestCouch().db(control.name)
  await eventually(async () => expect(await db.find('worker:sidecar:host-1')).toBeDefined())

  const answer = await fetch(`${sidecar.url}/_workers`, { headers: { authorization: basic(couchUrl()) } })
  expect(answer.status).toBe(200)
  const { workers } = (await answer.json()) as { workers: Record<string, unknown>[] }
  expect(workers).toEqual([
    {
      ...{ role: 'sidecar', id: 'host-1', timeout_ms: 15_000 },
      registered_at: expect.stringMatching(/^20/) as string,
      seen_at: expect.stringMatching(/^20/) as string,
      options: expect.objectContaining({
        control: {
          database: control.name,
          handlers: expect.arrayContaining(['device/new', 'confirm/clicked']) as object,
          types: expect.arrayContaining(['device', 'confirm']) as object,
        },
      }) as object,
    },
  ])
  expect((await fetch(`${sidecar.url}/_workers`)).status).toBe(401)
  expect((await fetch(`${sidecar.url}/_workers`, { method: 'POST' })).status).toBe(405)

  const { stdout } = await runCommand(['status'], settings)
  expect(stdout).toMatch(/^workers\n {2}sidecar {2}host-1 {2}since 20.*, last heartbeat 20/m)
  await sidecar.stop()
  expect(await db.find('worker:sidecar:host-1')).toBeUndefined()
  expect((await runCommand(['status'], settings)).stdout).toContain('workers\n  no worker is running')
})

test('a handler registers its own worker, and sees the other workers', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'workers-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const module = join(folder, 'handlers.mjs')
  await writeFile(
    module,
    `export default { machines: {}, register(control) {
      control.safe('job', 'new', async (doc, ctx) => {
        ctx.workers.register('printer', 'p1', { timeoutMs: 1000, paper: 'A4' })
        const seen = await new Promise((resolve) =>
          ctx.workers.subscribe('printer', ({ members }) => members.length > 0 && resolve(members), ctx.signal))
        return { ...doc, state: 'done', seen }
      })
    } }`,
  )
  const { control } = await startRegistration({ SIDECAR_HANDLERS: module })
  const db = createTestCouch().db(control.name)
  await db.put({ _id: 'job', type: 'job', state: 'new' })
  await eventually(async () =>
    expect(await db.get('job')).toMatchObject({ state: 'done', seen: [{ id: 'p1', options: { paper: 'A4' } }] }),
  )
})
