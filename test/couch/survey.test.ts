import { expect, onTestFinished, test } from 'vitest'
import type { CouchRequest } from '../../sidecar/couch/client.ts'
import { systemClock } from '../../sidecar/core/clock.ts'
import { createSharedSurvey, createSurvey, listDatabases, type Survey } from '../../sidecar/couch/survey.ts'
import { createTestCouch, deleteDb, needs, uniqueName } from '../support/couchdb.ts'
import { answerWith, startFaultyProxy } from '../support/faulty-proxy.ts'
import { answerOf } from '../support/answers.ts'

const { signal } = new AbortController()

async function make(names: readonly string[]): Promise<void> {
  for (const name of names) {
    await createTestCouch().db(name).create()
    onTestFinished(() => deleteDb(name))
  }
}

test.each([2, 3, 4, 7, 10_000])('each matching name is listed once, with pages of %i', async (aPage) => {
  const couch = createTestCouch()
  const prefix = uniqueName('listed')
  const names = ['$', '+', '-', '-a', '0', '_b', 'z'].map((end) => `${prefix}${end}`)
  await make(names)
  const all = await answerOf<string[]>(couch, { path: '_all_dbs' })
  const isTheirs = (name: string) => name.startsWith(prefix)
  expect(await listDatabases(couch, isTheirs, signal, aPage)).toEqual(all.filter(isTheirs).sort())
})

test('databases created or deleted between pages hide no others', async () => {
  const couch = createTestCouch()
  const prefix = uniqueName('going')
  const names = Array.from({ length: 9 }, (_, i) => `${prefix}-${i}`)
  await make(names)
  const request = async <T>(requested: CouchRequest): Promise<T> => {
    const page = await answerOf<string[]>(couch, requested)
    const last = page.at(-1)
    if (last?.startsWith(prefix)) await couch.request({ method: 'DELETE', db: last })
    return page as T
  }
  const listed = await listDatabases({ ...couch, request }, (name) => name.startsWith(prefix), signal, 3)
  expect(listed).toEqual(names)
})

/** Three callers that list the databases with a prefix, and read those that end in one of their letters. */
async function survey(survey: Survey, prefix: string, letters: readonly string[]) {
  return Promise.all(
    letters.map(async (own) => {
      const listed = await survey.list((name) => name.startsWith(prefix) && own.includes(name.at(-1)!), signal)
      const read: string[] = []
      for await (const readings of survey.read(listed, signal)) read.push(...readings.keys())
      return { listed, read: read.sort() }
    }),
  )
}

test('periodic runs that are due together share one request for the databases, and each gets its names', async () => {
  needs('node endpoints') // and _dbs_info, too
  const proxy = await startFaultyProxy()
  const couch = createTestCouch({ url: proxy.url })
  const prefix = uniqueName('shared')
  await make(['a', 'b', 'c', 'd'].map((end) => `${prefix}-${end}`))
  const shared = createSharedSurvey({ couch, clock: systemClock, signal })
  const letters = ['ab', 'bcd', 'x']
  const found = await survey(shared, prefix, letters)
  const once = proxy.requests.map(({ method, path }) => `${method} ${path.split('?')[0]}`)
  expect(found).toEqual(await survey(createSurvey(couch), prefix, letters))
  expect(once).toEqual(['GET /_all_dbs', 'POST /_dbs_info'])
  expect(proxy.requests.length - once.length).toBe(3 + 2)
  expect(found[1]!.read).toEqual(['b', 'c', 'd'].map((end) => `${prefix}-${end}`))
})

test('a failure is thrown to all callers, and an aborting caller gets its own reason', async () => {
  const proxy = await startFaultyProxy()
  const shared = createSharedSurvey({ couch: createTestCouch({ url: proxy.url }), clock: systemClock, signal })
  proxy.plan(() => answerWith(503, '{"error":"service_unavailable"}'))
  const leaving = new AbortController()
  const requested = [signal, signal, leaving.signal].map((until) => shared.list(() => true, until))
  leaving.abort(new Error('the caller has left'))
  const reasons = (await Promise.allSettled(requested)).map((one) => String(one.status === 'rejected' && one.reason))
  expect(reasons[0]).toMatch(/503/)
  expect(reasons).toEqual([reasons[0], reasons[0], 'Error: the caller has left'])
  proxy.plan(() => undefined)
  expect(await shared.list(() => false, signal)).toEqual([])
})
