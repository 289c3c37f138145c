import { describe, expect, onTestFinished, test } from 'vitest'
import { app } from '../deploy/app.ts'
import { ddocFolder } from '../deploy/folder.ts'
import { couchUrl, createTestCouch, deleteDb, freshDb, uniqueName } from '../support/couchdb.ts'
import { refuse, startFaultyProxy } from '../support/faulty-proxy.ts'
import { runInProcess } from '../acceptance/in-process.ts'

/** Databases whose names begin with `prefix`, sorted by name. */
async function openMany(prefix: string, count: number) {
  const couch = createTestCouch()
  const names = Array.from({ length: count }, (_, i) => `${prefix}-${i}`)
  onTestFinished(async () => {
    for (const name of names) await deleteDb(name)
  })
  for (const name of names) await couch.db(name).create()
  return names
}

const settings = (url = couchUrl()) => ({ COUCHDB_URL: url })

describe('many databases', () => {
  test('a database that fails stops no other, is reported at the end, and makes the exit code 1', async () => {
    const prefix = uniqueName('many')
    const names = await openMany(prefix, 12)
    const proxy = await startFaultyProxy()
    const broken = (path: string) => [2, 5].some((i) => path.startsWith(`/${names[i]}/_design`))
    proxy.plan(({ method, path }) => (method === 'PUT' && broken(path) ? refuse(400) : undefined))
    const deploy = ['deploy', '--ddocs', ddocFolder(app(1)), '--database', `${prefix}-*`]

    const failed = await runInProcess(deploy, settings(proxy.url))
    expect(failed.code).toBe(1)
    expect(failed.stdout).toContain('12 databases: 10 changed, 0 unchanged, 2 failed\n')
    const [head, ...list] = failed.stderr.trim().split('\n')
    expect(head).toBe('couchdb-sidecar: 2 of 12 databases failed, run the deploy again for the rest:')
    expect(list.map((line) => line.split(':')[0])).toEqual([names[2], names[5]])

    const again = await runInProcess(deploy, settings())
    expect(again).toMatchObject({ code: 0, stderr: '' })
    expect(again.stdout).toContain('12 databases: 2 changed, 10 unchanged, 0 failed\n')
    expect(again.stdout).not.toContain(`${names[0]}\n`) // an unchanged database is only counted
  })

  test('a glob that matches no database is reported', async () => {
    const deploy = ['deploy', '--ddocs', ddocFolder(app(1)), '--database', `${uniqueName('none')}-*`]
    const { code, stderr } = await runInProcess(deploy, settings())
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('has no database none-') as string,
    })
  })
})

test('--prune removes design documents that the folder lacks, but only those made from folders', async () => {
  const db = await freshDb('prune')
  for (const _id of ['_design/old', '_design/docstate'])
    await db.put({ _id, views: { v: { map: 'function (doc) {}' } } })
  await db.put({ _id: '_design/mango', language: 'query', views: {} })
  const deploy = ['deploy', '--ddocs', ddocFolder(app(1)), '--database', db.name]
  const ddocIds = async () => (await db.withPrefix('_design/')).map(({ _id }) => _id)
  const [docstate, mango, old, made] = ['docstate', 'mango', 'old', 'app'].map((name) => `_design/${name}`)

  await runInProcess(deploy, settings())
  expect(await ddocIds(), 'no document is removed without --prune').toEqual([made, docstate, mango, old])
  const shown = await runInProcess([...deploy, '--prune', '--dry-run'], settings())
  expect(shown.stdout).toContain('_design/old would be removed')
  expect(await ddocIds()).toContain(old)
  const pruned = await runInProcess([...deploy, '--prune'], settings())
  expect(pruned).toMatchObject({ code: 0, stderr: '' })
  expect(pruned.stdout).toContain('_design/old removed')
  expect(await ddocIds()).toEqual([made, docstate, mango])
})

test('--rollback without an unfinished deploy does nothing', async () => {
  const db = await freshDb('rollback')
  const deploy = ['deploy', '--database', db.name]
  await runInProcess([...deploy, '--ddocs', ddocFolder(app(1))], settings())
  const before = await db.get('_design/app')
  const rollback = await runInProcess(['deploy', '--database', db.name, '--rollback'], settings())
  expect(rollback).toEqual({ code: 0, stderr: '', stdout: `${db.name} has no unfinished deploy\n` })
  expect(await db.get('_design/app')).toEqual(before)
})

test('--rollback reports a missing database', async () => {
  const name = uniqueName('none')
  const { code, stderr } = await runInProcess(['deploy', '--database', name, '--rollback'], settings())
  expect({ code, stderr }).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`has no database ${name}`) as string,
  })
})
