/** Packages from the registry in UMD format, which checks its environment with `typeof`. */
import { symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { viewOf } from '../support/answers.ts'
import { createTestCouch, freshDb } from '../support/couchdb.ts'
import { deploy, errorOf } from './app.ts'
import { ddocFolder } from './folder.ts'

const MAP = `
  import dayjs from 'dayjs'
  import utc from 'dayjs/plugin/utc'
  import slugify from 'slugify'

  dayjs.extend(utc)

  export default function (doc: { title?: string; at?: string }): void {
    if (doc.title && doc.at) emit([dayjs.utc(doc.at).format('YYYY-MM'), slugify(doc.title, { lower: true })], null)
  }`

function withPackages(map: string): string {
  const folder = ddocFolder({
    'app/views/by_month/map.ts': map,
    '_samples/posts.ts': `export default { title: 'Crème brûlée', at: '2026-11-27T23:30:00-05:00' }`,
  })
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  return folder
}

test('a view can use dayjs with a plugin, and slugify', async () => {
  const db = await freshDb('packages')
  await db.put({ _id: 'a', title: 'Crème brûlée', at: '2026-11-30T23:30:00-05:00' })
  await deploy(createTestCouch(), db.name, withPackages(`import 'unorm'\n${MAP}`))
  expect((await viewOf(db, 'app', 'by_month')).rows).toMatchObject([{ id: 'a', key: ['2026-12', 'creme-brulee'] }])
})

test('a method that a package uses and CouchDB lacks is reported with the package that adds it', async () => {
  const db = await freshDb('packages')
  const { faults } = await errorOf(deploy(createTestCouch(), db.name, withPackages(MAP)))
  expect(faults).toEqual([
    expect.stringMatching(/app\/views\/by_month\/map\.ts: threw on posts\.ts: TypeError: .*import 'unorm' first/),
  ])
})
