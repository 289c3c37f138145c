/** Runs the first example of docs/designs/design-documents.md from the page itself. */
import { readFileSync, writeFileSync } from 'node:fs'
import { viewOf } from '../support/answers.ts'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { formatReport } from '../../sidecar/deploy/format-report.ts'
import { createTestCouch, freshDb, serverKind } from '../support/couchdb.ts'
import { deploy } from './app.ts'
import { ddocFolder } from './folder.ts'

const page = readFileSync(new URL('../../docs/designs/design-documents.md', import.meta.url), 'utf8')
const example = /## An example\n(.*?)\n## /s.exec(page)![1]!
const blocks = [...example.matchAll(/```\w*\n(.*?)```/gs)].map(([, block]) => block!)
const paths = [...example.matchAll(/`ddocs\/orders\/(\S+\.ts)`/g)].map(([, path]) => path!)

/** The embedded server does not report the progress of an index, so none is built first. */
const notHere = serverKind() === 'embedded' ? ', after its index is built' : ''

test('the worked example does what the page says', async () => {
  const [map, total, created, changed] = blocks
  const db = await freshDb('orders')
  const couch = createTestCouch()
  const folder = ddocFolder({ [paths[0]!]: map!, [paths[1]!]: total! })
  /** The lines after the first, which names the server and its engine. */
  const changes = (text: string) => text.replace(notHere, '').trim().split('\n').slice(1)
  const said = async (dryRun: boolean) =>
    changes(formatReport(await deploy(couch, db.name, folder, { dryRun })).replace(db.name, 'orders'))

  expect(await said(false)).toEqual(changes(created!))
  const [edit] = /`(total \+= .*?)`/.exec(example)!.slice(1)
  writeFileSync(join(folder, paths[1]!), total!.replace(/total \+= .*/, edit!))
  expect(await said(true)).toEqual(changes(changed!))
  expect(await said(false)).toEqual(changes(changed!.replace('would be updated', 'updated')))

  await db.put({ _id: 'o', type: 'order', items: [{ price: 2, count: 3 }] })
  expect((await viewOf(db, 'shop', 'by_total')).rows).toMatchObject([{ id: 'o', key: 6 }])
})
