import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../sidecar/core/clock.ts'
import { withHold } from '../../sidecar/deploy/staging/hold.ts'
import { surroundingsFrom } from '../../sidecar/deploy/staging/surroundings.ts'
import { createLatch } from '../docstate/rig.ts'
import { createTestCouch, deleteDb, needs, uniqueName } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { startFaultyProxy } from '../support/faulty-proxy.ts'
import { lookAway } from './registration.ts'
import { startSidecar } from './start.ts'

test('start waits for a running deploy of the design document that it needs', async () => {
  needs('index lag')
  const name = uniqueName('control')
  onTestFinished(() => deleteDb(name))
  const database = createTestCouch().db(name)
  await database.create()
  await lookAway({ admin: database })
  const done = createLatch()
  const surroundings = surroundingsFrom({ clock: systemClock, name: 'ann on desk' })
  const deploying = withHold(database, ['_design/docstate'], surroundings, async (hold) => {
    await done.opened
    await hold.complete()
  })
  const proxy = await startFaultyProxy()
  const starting = startSidecar({ COUCHDB_URL: proxy.url, SIDECAR_CONTROL_DB: name, SMTP_URL: 'smtp://127.0.0.1:9' })
  const watched = () => proxy.requests.filter(({ path }) => path.includes('_local/sidecar'))
  await eventually(() => expect(watched().length).toBeGreaterThan(1))
  expect(await database.find('_design/docstate')).toBeUndefined()
  done.open()
  await deploying
  expect((await starting).output()).toContain('waiting for another deploy')
  expect(await database.find('_design/docstate')).toBeDefined()
})
