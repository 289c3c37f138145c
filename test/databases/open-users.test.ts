/** A `_users` database that other users may write. CouchDB lets server admins configure this. */
import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { warnOfOpenUsers } from '../../sidecar/databases/prepare.ts'
import { createTestCouch, needs, startPrivateCouch } from '../support/couchdb.ts'

interface Line {
  readonly level: number
  readonly msg: string
  readonly reasons: readonly string[]
}

test('a warning lists what other users may do if _users is open to more than server admins', async () => {
  needs('private server')
  const server = await startPrivateCouch()
  onTestFinished(() => server.stop())
  const couch = createTestCouch({ url: server.url })
  const { origin, username, password } = new URL(server.url)
  await fetch(`${origin}/_node/_local/_config/couchdb/users_db_security_editable`, {
    method: 'PUT',
    headers: { authorization: `Basic ${btoa(`${username}:${password}`)}` },
    body: '"true"',
  })
  async function warned(security?: object): Promise<Line[]> {
    if (security) await couch.request({ method: 'PUT', db: '_users', path: '_security', body: security })
    const lines: Line[] = []
    const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as Line) })
    await warnOfOpenUsers(couch, log, new AbortController().signal)
    return lines
  }
  const none = { names: [], roles: [] }
  const admins = { names: [], roles: ['_admin'] }
  expect(await warned()).toEqual([])
  expect(await warned({ members: admins, admins })).toEqual([])
  expect(await warned({ members: none, admins })).toMatchObject([
    {
      level: 40,
      msg: expect.stringContaining('expected its _security') as string,
      reasons: [expect.stringMatching(/anyone may sign up/) as string],
    },
  ])
  expect(await warned({})).toMatchObject([{ reasons: [expect.stringMatching(/anyone/) as string] }])
  expect(await warned({ members: { names: ['bob'], roles: ['_admin'] }, admins })).toMatchObject([
    { reasons: [expect.stringMatching(/own documents: bob$/) as string] },
  ])
  expect(await warned({ members: admins, admins: { names: [], roles: ['_admin', 'chief'] } })).toMatchObject([
    { reasons: [expect.stringMatching(/any role to any user: chief$/) as string] },
  ])
})
