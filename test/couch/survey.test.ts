import { expect, onTestFinished, test } from 'vitest'
import type { CouchRequest } from '../../sidecar/couch/client.ts'
import { listDatabases } from '../../sidecar/couch/survey.ts'
import { createTestCouch, deleteDb, uniqueName } from '../support/couchdb.ts'
import { answerOf } from '../support/answers.ts'

const { signal } = new AbortController()

async function make(names: readonly string[]): Promise<void> {
  for (const name of names) {
    await createTestCouch().db(name).create()
    onTestFinished(() => deleteDb(name))
  }
}

test.each([2, 3, 4, 7, 10_000])('all names that are wanted are listed, each once, by pages of %i', async (aPage) => {
  const couch = createTestCouch()
  const prefix = uniqueName('listed')
  const names = ['$', '+', '-', '-a', '0', '_b', 'z'].map((end) => `${prefix}${end}`)
  await make(names)
  const there = await answerOf<string[]>(couch, { path: '_all_dbs' })
  const isTheirs = (name: string) => name.startsWith(prefix)
  expect(await listDatabases(couch, isTheirs, signal, aPage)).toEqual(there.filter(isTheirs).sort())
})

test('databases that come and go between pages hide no others', async () => {
  const couch = createTestCouch()
  const prefix = uniqueName('going')
  const names = Array.from({ length: 9 }, (_, i) => `${prefix}-${i}`)
  await make(names)
  const request = async <T>(asked: CouchRequest): Promise<T> => {
    const page = await answerOf<string[]>(couch, asked)
    const last = page.at(-1)
    if (last?.startsWith(prefix)) await couch.request({ method: 'DELETE', db: last })
    return page as T
  }
  const listed = await listDatabases({ ...couch, request }, (name) => name.startsWith(prefix), signal, 3)
  expect(listed).toEqual(names)
})
