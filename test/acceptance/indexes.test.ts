/** The sidecar builds indexes before a query needs them, and reports their lag. */
import { expect, test } from 'vitest'
import { couchUrl, createTestCouch, freshDb, needs } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { map, pendingIn, putDdoc, write } from '../indexes/rig.ts'
import { runCommand } from './start.ts'
import { settingsOf, startWatching } from './registration.ts'

interface Answer {
  readonly ken: string
  readonly rows: readonly { readonly db_name: string; readonly ddoc: string; readonly lag_seconds: number }[]
}

test('an index is built when its database changes, and GET /_indexes and status show it', async () => {
  needs('index lag')
  const { control, sidecar } = await startWatching()
  const { username, password } = new URL(couchUrl())
  const headers = { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` }
  const couch = createTestCouch()
  const db = await freshDb('sales')
  await putDdoc(couch, db.name, 'sales', { views: { by_total: { map } } })
  const ask = async () => {
    const response = await fetch(`${sidecar.url}/_indexes?database=${db.name}`, { headers })
    return (await response.json()) as Answer
  }
  for (let round = 0; round < 3; round++) {
    await write(couch, db.name, 3)
    await eventually(async () => expect(await pendingIn(couch, db.name, 'sales')).toBe(0))
  }
  await eventually(async () =>
    expect((await ask()).rows).toMatchObject([
      {
        db_name: db.name,
        ddoc: '_design/sales',
        kind: 'view',
        index: null,
        lag_changes: 0,
        building: false,
        error: null,
      },
    ]),
  )
  expect((await fetch(`${sidecar.url}/_indexes`)).status).toBe(401)
  await expect(control.admin.put({ _id: 'config:ken', limit: 0 })).rejects.toThrow('limit: expected a whole number')
  const rev = await control.admin.put({ _id: 'config:ken', limit: 42, ignore: [db.name] })
  await eventually(async () => expect((await ask()).rows).toEqual([]))
  await control.admin.remove('config:ken', rev)
  await eventually(async () => expect((await ask()).rows).toHaveLength(1))
  await eventually(async () => {
    const { stdout } = await runCommand(['status'], settingsOf(control))
    expect(stdout).toMatch(/indexes\n {2}(\d+) of \1 in these databases are up to date/)
  })
})
