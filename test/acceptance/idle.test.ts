import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { startFaultyProxy, type SeenRequest } from '../support/faulty-proxy.ts'
import type { Control } from './control.ts'
import { register, startRegistration } from './registration.ts'

/** Longer than any timer of the sidecar that causes a write. */
const QUIET_MS = 6_000

/** Excludes reads of many documents, which are POST requests too, and the worker's heartbeats. */
const isChange = ({ method, path }: SeenRequest): boolean =>
  !['GET', 'HEAD'].includes(method) && !/\/(_all_docs|_local_docs|_bulk_get|_dbs_info)$|\/_local\/worker/.test(path)

/** Events that the sidecar writes because databases of other tests change. */
const isOfOthers = ({ name, eventsName }: Control, { path, body }: SeenRequest): boolean =>
  path.startsWith(`/${eventsName}/`) && !body.includes(`:${name}"`)

test('an idle sidecar writes nothing', async () => {
  const proxy = await startFaultyProxy()
  const registration = await startRegistration({ COUCHDB_URL: proxy.url })
  await register(registration)
  let changes: SeenRequest[] = []
  let quietSince = performance.now()
  let revisions: string[] = []
  await eventually(async () => {
    const now = proxy.requests.filter((seen) => isChange(seen) && !isOfOthers(registration.control, seen))
    if (now.length > changes.length || revisions.length === 0) {
      changes = now
      quietSince = performance.now()
      revisions = await registration.control.revisions()
    }
    expect(performance.now() - quietSince, changes.at(-1)?.path).toBeGreaterThan(QUIET_MS)
  })
  expect(changes.length).toBeGreaterThan(0)
  expect(await registration.control.revisions()).toEqual(revisions)
})
