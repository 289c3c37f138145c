import { readdir, readFile } from 'node:fs/promises'
import { afterAll, expect, test } from 'vitest'
import { createCouch } from '../../sidecar/couch/client.ts'
import { couchUrl, createTestCouch, freshDb, needs, startPrivateCouch } from '../support/couchdb.ts'
import { eventually } from '../support/eventually.ts'
import { answerOf } from '../support/answers.ts'

const made: string[] = []

test('every fresh database is a new one and is empty', async () => {
  for (const db of [await freshDb('fresh'), await freshDb('fresh')]) {
    made.push(db.name)
    expect((await db.info()).doc_count).toBe(0)
  }
  expect(new Set(made).size).toBe(2)
})

afterAll(async () => {
  const couch = createCouch({ url: couchUrl() })
  const left = await answerOf<string[]>(couch, { path: '_all_dbs' })
  await couch.close()
  expect(left).not.toEqual(expect.arrayContaining(made))
})

test('the test server has an admin and no admin party', async () => {
  expect(await createTestCouch().request({ path: '_session' })).toMatchObject({ userCtx: { roles: ['_admin'] } })
  const stranger = createTestCouch({ url: new URL(couchUrl()).origin })
  expect(await stranger.request({ path: '_session' })).toMatchObject({ userCtx: { name: null, roles: [] } })
})

test('a private CouchDB can be killed and started again with its data', async () => {
  needs('private server')
  const server = await startPrivateCouch()
  const { pid } = server
  const couch = createTestCouch({ url: server.url })
  const db = couch.db('kept')
  await db.create()
  await db.put({ _id: 'a' })
  await server.kill()
  await expect(db.info()).rejects.toMatchObject({ code: 'unreachable' })
  expect(() => process.kill(pid, 0)).toThrow('ESRCH')
  await server.restart()
  expect(await db.get('a')).toMatchObject({ _id: 'a' })
  expect(server.pid).not.toBe(pid)
  await server.stop()
  await eventually(() => expect(() => process.kill(server.pid, 0)).toThrow('ESRCH'))
})

test('only needs() skips a test', async () => {
  const root = new URL('..', import.meta.url)
  const files = (await readdir(root, { recursive: true })).filter((name) => name.endsWith('.test.ts'))
  for (const file of files) {
    const source = await readFile(new URL(file, root), 'utf8')
    const skipping = /\b(test|it|describe|suite|ctx|context)(\.\w+)*\.(skip|skipIf|runIf|todo|only)\b/.exec(source)
    expect(skipping?.[0], file).toBeUndefined()
  }
})
