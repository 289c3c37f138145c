/** A canary document that passes through a running sidecar on request, and fails without one. */
import { expect, test } from 'vitest'
import { createControl } from '../acceptance/control.ts'
import { settingsOf } from '../acceptance/registration.ts'
import { runCommand, startSidecar } from '../acceptance/start.ts'
import { couchUrl } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'

async function setUp() {
  const control = await createControl()
  const settings = settingsOf(control, { SIDECAR_NAME: 'one' })
  const left = async () => control.admin.withPrefix('canary:')
  return { control, settings, left }
}

function admin(): string {
  const { username, password } = new URL(couchUrl())
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
}

const post = (url: string, authorization?: string) =>
  fetch(`${url}/_canary`, { method: 'POST', headers: authorization === undefined ? {} : { authorization } })

test('a canary reports its duration and worker, and leaves no document behind', async () => {
  const { settings, left } = await setUp()
  const sidecar = await startSidecar(settings)
  const shown = await runCommand(['canary'], settings)
  expect(shown.stdout).toMatch(/^the canary arrived after \d+ ms, handled by one$/m)
  const { stdout } = await runCommand(['canary', '--json'], settings)
  expect(JSON.parse(stdout)).toMatchObject({ kind: 'arrived', worker: 'one' })

  expect((await post(sidecar.url)).status).toBe(401)
  const answer = await post(sidecar.url, admin())
  expect(answer.status).toBe(200)
  expect(await answer.json()).toMatchObject({ ok: true, worker: 'one' })
  expect((await fetch(`${sidecar.url}/_canary`)).status).toBe(405)
  await eventually(async () => expect(await left()).toEqual([]))
})

test('without a worker, a canary is lost, reports what it waits for, and is not handled later', async () => {
  const { settings, left } = await setUp()
  await runCommand(['deploy'], settings)
  const { code, stderr } = await runCommand(['canary', '--within', '300ms'], settings)
  expect(code).toBe(1)
  expect(stderr).toContain('couchdb-sidecar: the canary has not arrived within 300ms')
  expect(stderr).toMatch(/worker/)
  expect(await left()).toEqual([])
  expect(await runCommand(['canary', '--within', 'soon'], settings)).toMatchObject({ code: 2 })
})

test('a canary reports that its handler is paused', async () => {
  const { settings } = await setUp()
  const sidecar = await startSidecar(settings)
  await runCommand(['pause', 'canary/sent'], settings)
  await eventually(async () => {
    const { code, stderr } = await runCommand(['canary', '--within', '500ms'], settings)
    expect([code, stderr]).toEqual([1, expect.stringContaining('paused')])
  })
  await runCommand(['resume', 'canary/sent'], settings)
  await eventually(async () => expect((await post(sidecar.url, admin())).status).toBe(200))
})
