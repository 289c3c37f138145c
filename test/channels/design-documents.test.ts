/** `SIDECAR_CHANNEL_DDOCS`: design documents that channels get beside the sidecar's own. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Couch } from '../../sidecar/couch/client.ts'
import { runCommand } from '../acceptance/start.ts'
import { ddocFolder } from '../deploy/folder.ts'
import { viewOf } from '../support/answers.ts'
import { couchUrl, deleteDb } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { thoroughTest } from '../support/thorough.ts'
import { channel, inState, startWithOwner } from './rig.ts'

const view = (name: string, key: string) => ({
  [`${name}/views/notes/map.js`]: `export default function (doc) { if (doc.text) emit(doc.${key}) }`,
})

/** The keys of the view `notes`. */
const notes = async (couch: Couch, db: string, ddoc: string) =>
  (await viewOf(couch.db(db), ddoc, 'notes')).rows.map(({ key }) => key)

test('a new channel gets the design documents of all folders, and its devices can query their views', async () => {
  const channelDdocs = [ddocFolder(view('by-text', 'text')), ddocFolder(view('by-color', 'color'))]
  const { couch, phone, ann, own, database } = await startWithOwner({ config: { channelDdocs } })
  await own.put(channel(ann, 'photos'))
  const { database: name } = await inState(couch, database, 'photos', 'ready')
  const db = String(name)
  await eventually(() => phone.couch.db(db).put({ _id: 'note', text: 'hello', color: 'red' }))
  expect(await notes(phone.couch, db, 'by-text')).toEqual(['hello'])
  expect(await notes(phone.couch, db, 'by-color')).toEqual(['red'])
  await expect(
    phone.couch.db(db).put({ _id: 'description' }),
    'the sidecar’s guard is installed, too',
  ).rejects.toThrow()
  expect(await couch.db(database).find('_design/by-text'), 'other databases do not get it').toBeUndefined()
})

thoroughTest('deploy does not recreate the missing database of a channel', async () => {
  const { couch, controlDb, ann, own, database } = await startWithOwner()
  await own.put(channel(ann, 'photos'))
  const name = String((await inState(couch, database, 'photos', 'ready')).database)
  await deleteDb(name)
  const settings = { COUCHDB_URL: couchUrl(), SIDECAR_CONTROL_DB: controlDb }
  expect(await runCommand(['deploy'], settings)).toMatchObject({ code: 0 })
  await expect(couch.db(name).info()).rejects.toMatchObject({ code: 'not_found' })
})

test('deploy updates the design documents of existing channels, but not of archived ones', async () => {
  const folder = ddocFolder(view('by', 'text'))
  const { couch, controlDb, phone, ann, own, database } = await startWithOwner({ config: { channelDdocs: [folder] } })
  for (const _id of ['photos', 'diary', 'old']) await own.put(channel(ann, _id))
  const [photos, diary, old] = await Promise.all(
    ['photos', 'diary', 'old'].map(async (id) => String((await inState(couch, database, id, 'ready')).database)),
  )
  await own.put({ ...(await own.get('old')), state: 'closing', close: 'archive' })
  await inState(couch, database, 'old', 'closed')
  for (const db of [photos!, diary!]) {
    await eventually(() => phone.couch.db(db).put({ _id: 'note', text: 'hello', color: 'red' }))
    expect(await notes(phone.couch, db, 'by')).toEqual(['hello'])
  }

  for (const [path, text] of Object.entries({ ...view('by', 'color'), ...view('more', 'text') })) {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const settings = { COUCHDB_URL: couchUrl(), SIDECAR_CONTROL_DB: controlDb, SIDECAR_CHANNEL_DDOCS: folder }
  const { code, stdout } = await runCommand(['deploy'], settings) // a slow deploy reports its progress on stderr
  expect(code).toBe(0)
  expect(stdout.match(new RegExp(`^${photos}$`, 'gm')), 'reported once').toHaveLength(1)
  for (const db of [photos!, diary!]) {
    expect(await notes(phone.couch, db, 'by')).toEqual(['red'])
    expect(await notes(phone.couch, db, 'more')).toEqual(['hello'])
  }
  const followed = await runCommand(['deploy', '--dry-run'], { ...settings, SIDECAR_DATABASES: photos! })
  expect(
    followed.stdout.match(new RegExp(`^${photos}$`, 'gm')),
    'reported once, also as a followed database',
  ).toHaveLength(1)
  expect(followed.stdout).toContain('  _design/docstate would be created\n')
  expect(await couch.db(old!).find('_design/more')).toBeUndefined()
  expect(await couch.db(database).find('_design/more')).toBeUndefined()
})
