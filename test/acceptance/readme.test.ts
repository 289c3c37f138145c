/** What the README tells to paste, as far as nothing else does it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { couchUrl, createTestCouch, freshDb } from '../support/couchdb.ts'
import { root } from './build.ts'

test('the control database is opened by curl, which calls JSON a form', async () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  const [, path, body] = /`curl -X PUT \$COUCHDB_URL(\/control\/_security) -d '(.*?)'`/.exec(readme)!
  const db = await freshDb('control')
  const { origin, username, password } = new URL(couchUrl())
  const headers = {
    authorization: `Basic ${btoa(`${username}:${password}`)}`,
    'content-type': 'application/x-www-form-urlencoded',
  }
  const url = origin + path!.replace('control', db.name)
  expect((await fetch(url, { method: 'PUT', headers, body: body! })).status).toBe(200)
  expect(await createTestCouch().request({ db: db.name, path: '_security' })).toMatchObject({
    members: { roles: ['app'] },
  })
})
